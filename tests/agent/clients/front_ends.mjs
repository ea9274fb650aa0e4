// The real clients of both front-end protocols, against the address of the argument: what they understood, as JSON.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

// The packages lie in the current folder, not beside this file.
const { resolve } = createRequire(`${process.cwd()}/package.json`);
const load = (name) => import(pathToFileURL(resolve(name)).href).then((found) => found.default ?? found);
const { HttpAgent } = await load("@ag-ui/client");
const { DefaultChatTransport, readUIMessageStream } = await load("ai");

const { url, questions } = JSON.parse(process.argv[2]);
const headers = { authorization: "Bearer any" };

const agent = new HttpAgent({ url: `${url}/ag-ui`, threadId: "thread-1", headers });
const seen = [];
for (const [place, question] of questions.entries()) {
  agent.messages.push({ id: `user-${place}`, role: "user", content: question });
  await agent.runAgent({ runId: `run-${place}` }, { onEvent: ({ event }) => void seen.push(event.type) });
}

const transport = new DefaultChatTransport({ api: `${url}/ui-messages`, headers });
const conversation = [];
for (const [place, question] of questions.entries()) {
  conversation.push({ id: `user-${place}`, role: "user", parts: [{ type: "text", text: question }] });
  const stream = await transport.sendMessages({
    chatId: "chat-1",
    messages: conversation,
    trigger: "submit-message",
    abortSignal: undefined,
  });
  let last;
  for await (const message of readUIMessageStream({ stream })) last = message;
  conversation.push(last);
}
console.log(JSON.stringify({ agUi: { messages: agent.messages, seen }, ui: conversation }));
