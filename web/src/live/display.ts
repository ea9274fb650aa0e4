// Formats numbers and names.

import { element } from "../dom.ts";

const FORMATS: Record<string, string> = {
  "openai-chat": "OpenAI Chat",
  "openai-responses": "OpenAI Responses",
  "anthropic-messages": "Anthropic Messages",
  gemini: "Gemini",
  vertex: "Vertex AI",
  "gemini-interactions": "Gemini Interactions",
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

// Created once, because creating one is slower than drawing a row.
const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });

export const clock = (at: number): string => CLOCK.format(at);

const CENT = 0.01;

/** In dollars, with as many digits as the amount needs. */
export function money(amount: number | undefined): string {
  if (amount === undefined) return "";
  if (amount === 0) return "$0";
  if (Math.abs(amount) >= CENT) return `$${amount.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 })}`;
  return Math.abs(amount) < 1e-6 ? "<$0.000001" : `$${Number(amount.toPrecision(2)).toFixed(6).replace(/0+$/, "")}`;
}

export function percent(part: number, whole: number): string {
  if (whole === 0) return "–";
  const share = (100 * part) / whole;
  return `${share !== 0 && share < 10 ? share.toFixed(1) : Math.round(share)} %`;
}

/** 12,345 or 1.2 M: short enough for a column. */
export function amount(number: number): string {
  if (number < 100_000) return number.toLocaleString("en");
  return number < 1_000_000 ? `${Math.round(number / 1000)} k` : `${(number / 1_000_000).toFixed(1)} M`;
}
