// Copies to the clipboard, with a notice.

import { notice } from "./notices.ts";

export async function copy(text: string, what: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    notice(`${what} copied`);
  } catch {
    notice("The browser does not allow copying here.", "problem");
  }
}
