// A tool loop with the Vercel AI SDK, for each case of the argument: answers as JSON. It does not import dragoman.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

// The packages are in the current folder, not beside this file.
const { resolve } = createRequire(`${process.cwd()}/package.json`);
const load = (name) => import(pathToFileURL(resolve(name)).href).then((found) => found.default ?? found);
const { generateText, stepCountIs, streamText, tool } = await load("ai");
const { createOpenAI } = await load("@ai-sdk/openai");
const { createAnthropic } = await load("@ai-sdk/anthropic");
const { createGoogleGenerativeAI } = await load("@ai-sdk/google");
const { z } = await load("zod");

// Created for each case, because they read their base URLs from the environment.
const models = {
  "openai-chat": (name) => createOpenAI().chat(name),
  "openai-responses": (name) => createOpenAI()(name),
  "anthropic-messages": (name) => createAnthropic()(name),
  gemini: (name) => createGoogleGenerativeAI({ baseURL: process.env.GOOGLE_GENERATIVE_AI_BASE_URL })(name),
};

const { questions, weather, cases } = JSON.parse(process.argv[2]);
const answers = [];
for (const { client, model, streamed, environment } of cases) {
  Object.assign(process.env, environment);
  const messages = [];
  let text = "";
  try {
    for (const question of questions) {
      messages.push({ role: "user", content: question });
      const asked = {
        model: models[client](model),
        messages,
        maxRetries: 0,
        onError: () => {},
        stopWhen: stepCountIs(5),
        tools: {
          get_weather: tool({
            description: "Weather of a city",
            inputSchema: z.object({ city: z.string() }),
            execute: async ({ city }) => weather[city],
          }),
        },
      };
      const result = streamed ? streamText(asked) : await generateText(asked);
      text = await result.text;
      messages.push(...(await result.response).messages);
    }
  } catch (error) {
    text = `${error.name}: ${error.message}`.slice(0, 600);
  }
  answers.push(text);
}
console.log(JSON.stringify(answers));
