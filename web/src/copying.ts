// To the clipboard, and told.

import { notice } from "./notices.ts";

export async function copy(text: string, what: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    notice(`${what} copied`);
  } catch {
    notice("the browser does not let pages copy here", "problem");
  }
}
