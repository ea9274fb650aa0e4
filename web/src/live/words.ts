// Numbers and names as people read them.

import { element } from "../dom.ts";

const FORMATS: Record<string, string> = {
  "openai-chat": "OpenAI Chat",
  "openai-responses": "OpenAI Responses",
  "anthropic-messages": "Anthropic Messages",
  gemini: "Gemini",
  vertex: "Vertex AI",
  "ollama-chat": "Ollama",
  "cohere-chat": "Cohere",
  "bedrock-converse": "Bedrock Converse",
};

export const formatName = (format: string): string => FORMATS[format] ?? format;

/** The name of a format behind a dot in the colour of its family. */
export function formatChip(format: string): HTMLElement {
  return element("span", { class: "format", "data-format": format }, formatName(format));
}

export function duration(milliseconds: number | undefined): string {
  if (milliseconds === undefined) return "";
  if (milliseconds < 10) return `${milliseconds.toFixed(1)} ms`;
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  return milliseconds < 60_000 ? `${(milliseconds / 1000).toFixed(2)} s` : `${(milliseconds / 60_000).toFixed(1)} min`;
}

export function bytes(size: number): string {
  if (size < 1000) return `${size} B`;
  return size < 1_000_000 ? `${(size / 1000).toFixed(1)} kB` : `${(size / 1_000_000).toFixed(1)} MB`;
}

// Made once: making one costs more than a row of the list.
const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });

export const clock = (at: number): string => CLOCK.format(at);
