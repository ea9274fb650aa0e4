// Files that go with the next message: chosen, pasted or dropped anywhere on the page.

import { button, element } from "../dom.ts";
import { attempt } from "../notices.ts";
import type { Attachment } from "./types.ts";

export class Files {
  readonly node = element("div", { id: "files" });
  readonly input: HTMLInputElement;
  #attached: Attachment[] = [];

  constructor() {
    const chosen = attempt(async () => {
      await this.add(this.input.files ?? []);
      this.input.value = ""; // the same file may be chosen again
    });
    const hidden = { id: "file", type: "file", multiple: true, hidden: true, "aria-label": "Files to attach" };
    this.input = element("input", { ...hidden, onchange: chosen });
    // A reload would lose the files (the text is kept).
    addEventListener("beforeunload", (event) => this.#attached.length && event.preventDefault());
  }

  get attached(): readonly Attachment[] {
    return this.#attached;
  }

  clear(): void {
    this.#attached = [];
    this.#show();
  }

  async add(files: Iterable<File>): Promise<void> {
    for (const file of files) {
      this.#attached.push({ name: file.name, media_type: file.type, data: await base64(file) });
      this.#show();
    }
  }

  #show(): void {
    const chips = this.#attached.map((file) => {
      const drop = (): void => {
        this.#attached = this.#attached.filter((one) => one !== file);
        this.#show();
      };
      const label = { class: "small", "aria-label": `Remove ${file.name}` };
      return element("span", { class: "chip" }, file.name, button("×", drop, label));
    });
    this.node.replaceChildren(...chips);
  }

  /** `target` is highlighted while a file is dragged over the page. */
  listen(root: HTMLElement, target: HTMLElement): void {
    const carriesFiles = (event: DragEvent): boolean => event.dataTransfer?.types.includes("Files") ?? false;
    for (const kind of ["dragenter", "dragover", "dragleave", "drop"] as const) {
      root.addEventListener(kind, (event) => {
        if (!carriesFiles(event)) return;
        event.preventDefault(); // a browser would open the file instead
        target.classList.toggle("drop", kind === "dragenter" || kind === "dragover");
        if (kind === "drop") void attempt(() => this.add(event.dataTransfer?.files ?? []))();
      });
    }
  }
}

function base64(file: File): Promise<string> {
  return new Promise((done, failed) => {
    const reader = new FileReader();
    reader.onload = () => done(String(reader.result).replace(/^[^,]*,/, ""));
    reader.onerror = () => failed(reader.error ?? new Error(`${file.name} cannot be read`));
    reader.readAsDataURL(file);
  });
}
