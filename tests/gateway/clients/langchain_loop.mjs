// Tool loops with LangChain's JavaScript, for each case of the argument: answers as JSON. It does not import dragoman.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

// The packages are in the current folder, not beside this file.
const { resolve } = createRequire(`${process.cwd()}/package.json`);
const load = (name) => import(pathToFileURL(resolve(name)).href).then((found) => found.default ?? found);
const { HumanMessage, ToolMessage } = await load("@langchain/core/messages");
const { tool } = await load("@langchain/core/tools");
const { concat } = await load("@langchain/core/utils/stream");
const { ChatAnthropic } = await load("@langchain/anthropic");
const { ChatOpenAI } = await load("@langchain/openai");
const { ChatGoogleGenerativeAI } = await load("@langchain/google-genai");
const { z } = await load("zod");

const thinking = { thinking: { type: "enabled", budget_tokens: 1024 }, maxTokens: 4000 };
const common = { apiKey: "any", maxRetries: 0 };
const openai = () => ({ configuration: { baseURL: process.env.OPENAI_BASE_URL } });
const models = {
  "openai-chat": ({ model }) => new ChatOpenAI({ model, ...common, ...openai() }),
  "openai-responses": ({ model }) => new ChatOpenAI({ model, useResponsesApi: true, ...common, ...openai() }),
  "anthropic-messages": ({ model, thinks }) =>
    new ChatAnthropic({ model, ...common, anthropicApiUrl: process.env.ANTHROPIC_BASE_URL, ...(thinks ? thinking : {}) }),
  gemini: ({ model }) => new ChatGoogleGenerativeAI({ model, ...common, baseUrl: process.env.GOOGLE_GEMINI_BASE_URL }),
};

const { questions, weather, cases } = JSON.parse(process.argv[2]);

async function answer(asked) {
  const getWeather = tool(async ({ city }) => weather[city], {
    name: "get_weather",
    description: "Weather of a city",
    schema: z.object({ city: z.string() }),
  });
  const model = models[asked.client](asked).bindTools([getWeather]);
  const history = [];
  let message;
  for (const question of questions) {
    history.push(new HumanMessage(question));
    for (;;) {
      if (asked.streamed) {
        message = undefined;
        for await (const chunk of await model.stream(history)) message = message === undefined ? chunk : concat(message, chunk);
      } else {
        message = await model.invoke(history);
      }
      history.push(message);
      if (!message.tool_calls?.length) break;
      for (const call of message.tool_calls)
        history.push(new ToolMessage({ content: weather[call.args.city], tool_call_id: call.id, name: call.name }));
    }
  }
  return message.text;
}

const answers = [];
for (const asked of cases) {
  Object.assign(process.env, asked.environment);
  try {
    answers.push(await answer(asked));
  } catch (error) {
    answers.push(`${error.name}: ${error.message}`.slice(0, 600));
  }
}
console.log(JSON.stringify(answers));
