// Bodies to begin with.

export interface Example {
  readonly label: string;
  /** What it shows. */
  readonly about: string;
  readonly text: string;
}

const pretty = (value: unknown): string => JSON.stringify(value, null, 2);

const WEATHER = {
  type: "object",
  properties: { city: { type: "string", description: "A city, such as Paris" }, unit: { enum: ["celsius", "fahrenheit"] } },
  required: ["city"],
  additionalProperties: false,
};

const TOOL_CALL = {
  model: "gpt-5.6",
  messages: [
    { role: "system", content: "Answer in one sentence." },
    { role: "user", content: "What is the weather in Paris and in Rome?" },
    {
      role: "assistant",
      content: null,
      tool_calls: [
        { id: "call_paris", type: "function", function: { name: "get_weather", arguments: '{"city": "Paris"}' } },
        { id: "call_rome", type: "function", function: { name: "get_weather", arguments: '{"city": "Rome"}' } },
      ],
    },
    { role: "tool", tool_call_id: "call_paris", content: '{"temperature": 18, "sky": "clear"}' },
    { role: "tool", tool_call_id: "call_rome", content: "the station does not answer" },
  ],
  tools: [{ type: "function", function: { name: "get_weather", description: "The weather of a city", parameters: WEATHER, strict: true } }],
  parallel_tool_calls: true,
  seed: 7,
  logit_bias: { "50256": -100 },
};

// A red dot of one pixel.
const DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";

const PICTURE = {
  model: "claude-sonnet-5",
  max_tokens: 500,
  system: [{ type: "text", text: "You describe pictures.", cache_control: { type: "ephemeral" } }],
  messages: [
    {
      role: "user",
      content: [
        { type: "image", source: { type: "base64", media_type: "image/png", data: DOT } },
        { type: "image", source: { type: "url", url: "https://example.com/harbour.jpg" } },
        { type: "text", text: "What is on these two pictures?" },
      ],
    },
  ],
  top_k: 40,
};

const REASONING = {
  contents: [
    { role: "user", parts: [{ text: "Is 221 prime? Use the tool." }] },
    {
      role: "model",
      parts: [
        { text: "221 = 13 · 17, but I shall ask.", thought: true },
        { functionCall: { id: "call_1", name: "factorise", args: { number: 221 } }, thoughtSignature: "c2lnbmVkIGJ5IHRoZSBtb2RlbA==" },
      ],
    },
    { role: "user", parts: [{ functionResponse: { id: "call_1", name: "factorise", response: { factors: [13, 17] } } }] },
  ],
  tools: [
    {
      functionDeclarations: [
        {
          name: "factorise",
          description: "Prime factors of a number",
          parameters: { type: "OBJECT", properties: { number: { type: "INTEGER" } }, required: ["number"] },
        },
      ],
    },
  ],
  generationConfig: { maxOutputTokens: 2000, thinkingConfig: { includeThoughts: true, thinkingBudget: 1024 } },
  safetySettings: [{ category: "HARM_CATEGORY_HARASSMENT", threshold: "BLOCK_ONLY_HIGH" }],
};

function chunk(delta: unknown, finish: string | null = null): string {
  const about = { id: "chatcmpl-1", object: "chat.completion.chunk", created: 1760000000, model: "gpt-5.6" };
  const chunk = { ...about, choices: [{ index: 0, delta, finish_reason: finish }] };
  return `data: ${JSON.stringify(chunk)}\n\n`;
}

const STREAM = [
  chunk({ role: "assistant", content: "Let me " }),
  chunk({ content: "look." }),
  chunk({ tool_calls: [{ index: 0, id: "call_1", type: "function", function: { name: "get_weather", arguments: "" } }] }),
  chunk({ tool_calls: [{ index: 0, function: { arguments: '{"city": ' } }] }),
  chunk({ tool_calls: [{ index: 0, function: { arguments: '"Paris"}' } }] }),
  chunk({}, "tool_calls"),
  "data: [DONE]\n\n",
].join("");

const ANSWER = {
  id: "msg_1",
  type: "message",
  role: "assistant",
  model: "claude-sonnet-5",
  content: [
    { type: "thinking", thinking: "They greet me, so I greet them.", signature: "c2lnbmVkIGJ5IHRoZSBtb2RlbA==" },
    { type: "text", text: "Hello! What can I do for you?" },
  ],
  stop_reason: "end_turn",
  stop_sequence: null,
  usage: { input_tokens: 12, output_tokens: 25, cache_read_input_tokens: 4, cache_creation_input_tokens: 0 },
};

const REFUSAL = {
  type: "error",
  error: { type: "rate_limit_error", message: "This request exceeds the limit of tokens per minute" },
};

const HISTORY = [
  { role: "user", content: [{ type: "text", content: "What is the weather in Paris?" }] },
  { role: "gemini", content: [{ type: "text", content: "It is clear, 18 °C." }] },
];

export const EXAMPLES: readonly Example[] = [
  { label: "Tool calls (OpenAI Chat)", about: "Two parallel calls, one of which failed, and settings that others lack", text: pretty(TOOL_CALL) },
  { label: "Pictures (Anthropic Messages)", about: "One inline, one by address, and a cache mark", text: pretty(PICTURE) },
  { label: "Reasoning with a signature (Gemini)", about: "A thought, a signed call and its result", text: pretty(REASONING) },
  { label: "A stream (OpenAI Chat)", about: "Recorded events become those of another API", text: STREAM },
  { label: "An answer (Anthropic Messages)", about: "Thinking, text, and how tokens are counted", text: pretty(ANSWER) },
  { label: "An error (Anthropic Messages)", about: "A rate limit, in each API's own format", text: pretty(REFUSAL) },
  { label: "A stored history (multi-llm-chat)", about: "A conversation of a chat program becomes a request", text: pretty(HISTORY) },
];
