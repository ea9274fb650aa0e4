// Approvals and tools of the client, there and back, with the real clients: what they ended with, as JSON.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

// The packages lie in the current folder, not beside this file.
const { resolve } = createRequire(`${process.cwd()}/package.json`);
const load = (name) => import(pathToFileURL(resolve(name)).href).then((found) => found.default ?? found);
const { HttpAgent } = await load("@ag-ui/client");

const { url, approved, ai } = JSON.parse(process.argv[2]);
const headers = { authorization: "Bearer any" };
const weather = { name: "get_weather", description: "Weather.", parameters: { type: "object", properties: {} } };

// AG-UI: interrupts are answered by `resume`, calls of the client's tools by messages.
const agent = new HttpAgent({ url: `${url}/ag-ui`, threadId: `thread-${ai}-${approved}`, headers });
const outcomes = [];
agent.messages.push({ id: "user-1", role: "user", content: "Go" });
const run = (input) =>
  agent.runAgent({ tools: [weather], ...input }, { onRunFinishedEvent: ({ event }) => void outcomes.push(event) });
await run({ runId: "run-1" });
const asked = outcomes[0].outcome?.interrupts ?? [];
const called = agent.messages.flatMap((one) => one.toolCalls ?? []).find((one) => one.function.name === "get_weather");
agent.messages.push({ id: "result-1", role: "tool", toolCallId: called.id, content: "clear sky" });
await run({
  runId: "run-2",
  resume: asked.map(({ id }) => ({ interruptId: id, status: "resolved", payload: { approved, reason: "so" } })),
});

// Vercel: the chat itself, as a hook of React or Vue wraps it.
const { AbstractChat, DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses } = await load(ai);
class State {
  messages = [];
  status = "ready";
  error = undefined;
  pushMessage = (message) => void (this.messages = [...this.messages, message]);
  popMessage = () => void (this.messages = this.messages.slice(0, -1));
  replaceMessage = (index, message) => void (this.messages = this.messages.with?.(index, message) ?? this.messages);
  snapshot = (value) => structuredClone(value);
}
class Chat extends AbstractChat {}
let sent = 0;
const chat = new Chat({
  id: `chat-${ai}-${approved}`,
  state: new State(),
  transport: new DefaultChatTransport({
    api: `${url}/ui-messages`,
    headers,
    body: { tools: { get_weather: weather } },
    fetch: (...given) => (sent++, fetch(...given)),
  }),
  sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  onError: (error) => console.error(error),
});
const settled = async (ready) => {
  for (let tries = 0; tries < 600 && !ready(); tries++) await new Promise((go) => setTimeout(go, 50));
};
const parts = () => chat.messages.at(-1).parts.filter((part) => part.type === "dynamic-tool");
await chat.sendMessage({ text: "Go" });
await settled(() => chat.status === "ready");
const waited = structuredClone(parts());
for (const part of waited) {
  if (part.toolName === "get_weather") {
    await chat.addToolOutput({ tool: "get_weather", toolCallId: part.toolCallId, output: "clear sky" });
  }
}
for (const part of waited) {
  if (part.state === "approval-requested") {
    await chat.addToolApprovalResponse({ id: part.approval.id, approved, reason: "so" });
  }
}
await settled(() => sent === 2 && chat.status === "ready");
console.log(
  JSON.stringify({ agUi: { messages: agent.messages, outcomes }, waited, ui: chat.messages, sent, status: chat.status }),
);
