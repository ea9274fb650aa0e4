// Dark or light theme: the system's, or the user's choice.

const KEPT = "theme";
const root = document.documentElement;

function isDark(): boolean {
  return root.dataset["theme"] ? root.dataset["theme"] === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

export function restore(): void {
  const kept = localStorage.getItem(KEPT);
  if (kept === "dark" || kept === "light") root.dataset["theme"] = kept;
}

export function toggle(): void {
  root.dataset["theme"] = isDark() ? "light" : "dark";
  localStorage.setItem(KEPT, root.dataset["theme"]);
}
