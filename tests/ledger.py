"""The promises of dragoman. Each has an id, and tests name the promises that they check (tests/support/promises.py).
tests/test_ledger.py fails if a promise that is due has no test, or if a test names a promise that does not exist.

`law:*`: the eleven laws of docs/architecture.md. `core:*`: how the core keeps them, and rules for its source.
`report:*`: failures that users of other libraries reported, and what dragoman does instead. `agent:*`: what an agent
does with tools. `gateway:*`: what `dragoman serve` does between any client and any provider. `chat:*`: what `dragoman
chat` does with several models in one conversation. `web:*`: what all views of the page have in common.
"""

from dataclasses import dataclass
from typing import Literal

Stage = Literal["core", "streams", "formats", "providers", "agent", "gateway", "chat", "web", "batch"]

# The stages whose promises must be kept today. A stage joins when its work is finished, and never leaves.
DUE: frozenset[Stage] = frozenset({"core", "streams", "formats", "agent", "chat", "gateway", "web", "batch"})


@dataclass(frozen=True, slots=True)
class Promise:
    id: str
    text: str
    due: Stage


LAWS: tuple[tuple[str, Stage, str], ...] = (
    ("1-identity", "core", "A valid body, decoded and encoded to its own format, is the same body."),
    (
        "2-nothing-vanishes",
        "core",
        "What the target cannot express is a loss with path and reason; strict mode refuses.",
    ),
    ("3-legality", "core", "What is encoded obeys the target's own rules, or is refused with a reason."),
    ("4-determinism", "core", "The same input gives the same bytes; an invented id follows from its position."),
    ("5-streams-tell-the-same-story", "streams", "Any cut adds up to the same answer; an early end is an error."),
    ("6-owed-back", "core", "Opaque vendor data returns to its own family, on its own part, and reaches no other."),
    ("7-no-guessing", "core", "Arguments are never repaired, and a failed answer never looks like a success."),
    ("8-pairs-hold", "core", "Results follow calls, in order, in the right turn; repairs are reported and idempotent."),
    ("9-usage-adds-up", "core", "Token counts keep their sums from every format to every other."),
    ("10-bad-input-good-words", "core", "Bad input gives a typed error with path, expectation and finding; no crash."),
    (
        "11-linear-cost",
        "core",
        "The cost of every public entry point grows linearly with each dimension of its input.",
    ),
)

CORE: tuple[tuple[str, str], ...] = (
    ("traits", "Decoders note what a conversation contains; only the passes that it needs for a target run."),
    ("lifts-one-object", "An unknown key costs the lifting of its own object; many of them, one lifting of the body."),
    ("settings-table", "A setting without a row in a codec is a loss there, by construction."),
    ("content-crosses", "Search results, files and media cross as far as a target takes them; no turn is left empty."),
    ("small-things", "What real clients and servers write in unusual ways returns as it came, or is reported."),
    ("accounts", "Counts that a provider keeps apart cross where the target has a place, and are noted otherwise."),
    ("automatic-cache-marks", "One option marks whole requests for the prompt caches of Anthropic and Bedrock."),
    ("honest-endings", "An answer that failed, was blocked or is not finished is not a success in any format."),
    ("shared-settings", "A setting that two APIs have crosses between them; the limits of the target are kept."),
    ("log-probabilities", "Log probabilities of an answer cross between the APIs that have them, in streams too."),
    ("tool-memo", "A tool is read and written once, whichever body contains it; its losses are remembered with it."),
    ("hosted-tools", "A tool that two vendors run crosses between them, with its options, choice, calls and results."),
    (
        "client-run-tools",
        "A tool that a vendor defines and the client runs is a function elsewhere, and returns as it was.",
    ),
    ("every-part-handled", "Every codec has a handler for every type of part."),
    ("benchmarks", "The benchmarks measure real bodies with their losses read, and fail over the limits they name."),
    ("vendor-fields", "Every field of the vendors' SDK types is in our wire structs, or listed with a reason."),
    ("few-lifted", "At most 2 % of the real bodies and events of any source are lifted."),
    (
        "mirrored-codecs",
        "Codec folders have the same public names in the same files; what differs is listed.",
    ),
    ("public-surface", "The exported names are counted, so that none becomes public by accident."),
    ("linear-losses", "The paths of all losses are worked out in one pass over the body."),
    ("plain-words", "Docstrings, comments and messages keep to plain words."),
)

REPORTS: tuple[tuple[int, Stage, str], ...] = (
    # Streamed tool calls
    (1, "streams", "The index of a streamed Chat call counts tool calls from zero; other blocks do not shift it."),
    (2, "streams", "A chunk whose list of tool calls is empty or null is read as having none; its text arrives."),
    (3, "formats", "Ollama calls that come one per chunk stay apart in Chat: rising index, own id, arguments as text."),
    (4, "streams", "Index and id of a call are fixed once per stream: three calls of one tool have three ids."),
    (5, "streams", "Argument fragments of parallel calls that interleave each reach their own call."),
    (6, "streams", "A Messages stream has one block open at a time and closes each, also a call without arguments."),
    (7, "streams", "Text after thinking travels under its own block index."),
    (8, "streams", "Text between two calls gets a block of its own; no open tool block ever receives it."),
    (9, "streams", "A call ends at the wire's end signal, even if a prefix of its arguments was valid JSON before."),
    (10, "streams", "A call whose name comes late starts once, with its name and the fragments so far."),
    (11, "streams", "The function name appears in the first fragment of a call and in no later one."),
    (12, "formats", "A Responses stream whose arguments are an object instead of text loses no call."),
    (13, "formats", "A Responses stream that announces no item is understood from its first delta or done event."),
    (
        14,
        "streams",
        "A Messages stream starts once: a repeated start is ignored, a start of another message is an error.",
    ),
    (15, "streams", "The first block has the kind of what comes first; a chunk of several kinds is split in order."),
    (16, "streams", "A stream that ends without a finish reason is reported as truncated, never as finished."),
    (17, "core", "A call cut off by the token limit is kept as incomplete, under the finish reason for length."),
    (18, "core", "Gemini and Chat get all parallel calls, in the same order."),
    (19, "streams", "The first chunk of every Chat stream carries the assistant role."),
    (20, "formats", "A Responses custom tool is sent as a function and comes back as the custom tool it was."),
    (21, "formats", "Responses events are matched by item, each call is closed, and failures stay failures."),
    (22, "streams", "Fragments of one reasoning block join; reasoning and text under the same index stay apart."),
    (23, "streams", "Text before a call is closed before the call opens, and the stop reason reflects the calls seen."),
    (24, "formats", "All of Ollama's thinking deltas arrive as reasoning, down to the last."),
    # Thinking, signatures, encrypted reasoning
    (25, "core", "A Gemini thought signature survives a client of any other format and is there on the next turn."),
    (26, "core", "Signatures travel in metadata slots; no id is lengthened to hide one."),
    (27, "core", "A turn is replayed with the signatures it had; one with none gets a placeholder, on its first call."),
    (28, "core", "A call is never rewritten as prose: unsigned calls beside a signed one remain calls."),
    (29, "core", "A signature stays on the part that carried it, whatever its kind, empty text included."),
    (30, "core", "Values of the intermediate format survive JSON and back with all their metadata."),
    (31, "core", "Reasoning that is unsigned or of another vendor never turns into assistant text."),
    (32, "streams", "Reasoning whose stream broke off before its end keeps no signature."),
    (33, "core", "An empty or null signature is never sent."),
    (34, "core", "A signature Gemini put on the part after the thought goes back on that part."),
    (35, "core", "A signature names its vendor: Gemini and Vertex share it, other families never receive it."),
    (36, "core", "In a tool loop the assistant turn for Messages begins with its own thinking blocks, unchanged."),
    (37, "core", "A signed block that stays in its format comes out exactly as it went in."),
    (38, "core", "Redacted thinking is kept in its place and returns to its vendor through foreign clients."),
    (39, "core", "No private key of ours appears in a body whose API refuses unknown fields."),
    (40, "streams", "A streamed signature comes before its block ends, also in the slots that other clients echo."),
    (41, "core", "Several reasoning parts of a turn stay several, and so do the pieces of a summary."),
    (42, "providers", "When reasoning is asked of OpenAI, the endpoint that gives it back is the one called."),
    (43, "core", "Plain-text reasoning goes back with its tool turn to the servers that require it, and only there."),
    (44, "core", "Thoughts of a Gemini answer are readable in a Chat answer instead of being dropped."),
    # Tool results
    (45, "core", "Every format shows, in its own way, that a tool failed, and reads it back as a failure."),
    (46, "core", "Results of parallel calls share one turn where the target demands it."),
    (47, "core", "Results stand in the order of their calls, the same bytes every time."),
    (48, "core", "A call without result gets an explicit error result; a result without call is refused or reported."),
    (49, "core", "A Gemini result bears the name and id of its call, even when results come out of order."),
    (50, "core", "Gemini gets an object result as it is and anything else wrapped; only our own wrapping is undone."),
    (51, "core", "A result that contains schema references reaches Gemini as text."),
    (52, "core", "Blocks of another format inside a history are understood or refused, never dropped in silence."),
    (53, "core", "A second result for the same call is resolved and reported."),
    (54, "core", "A call the server ran stays together with its result; the client neither runs nor answers it."),
    (55, "core", "Results mixed with text in one Messages turn all cross, text after results, and are joined again."),
    (56, "core", "An image in a tool result reaches the model in each format that has images, and finds its way back."),
    (57, "formats", "Ollama histories keep calls and results as such instead of retelling them as user text."),
    (58, "core", "Zero, false and empty values count as values; the input of a tool use is always an object."),
    (59, "core", "Argument text that is not JSON is kept exactly, in object formats by a reversible wrapper."),
    # Ids
    (60, "core", "A legal id passes unchanged; any other gets the same derived alias on the call and on its result."),
    (61, "formats", "The item id and the call id of Responses are never mistaken for each other, nor left empty."),
    (62, "core", "An id Gemini gave is echoed; one we made up is not sent where calls are matched by order."),
    (63, "core", "A made-up id follows from its position in the conversation, and is the same every time."),
    # Tools, schemas, tool choice
    (64, "core", "Schema references stay where the target reads them, else are inlined; recursion is refused clearly."),
    (65, "core", "A schema is reduced only for the target that needs it, and each dropped keyword is reported."),
    (66, "core", "Enums that are not text, numeric limits and exclusive bounds follow a rule per keyword and target."),
    (67, "core", "A forced choice reaches Gemini as ANY; VALIDATED stands only for strict tools under a free choice."),
    (68, "core", "A choice among several tools keeps all the names; without such a choice the tools are filtered."),
    (69, "core", "Choosing no tool works for every target; tools are left out only when the history has no calls."),
    (70, "core", "The switch for parallel calls forces no tool use; neither it nor a choice is sent without tools."),
    (71, "core", "A provider's own tool is converted, passed on or refused, and what is lost is reported."),
    (72, "core", "Search beside functions is sent to models that take both; for others it is dropped and reported."),
    (73, "formats", "Responses gets its tools in the flat shape."),
    (74, "core", "Structured output done by means of a tool comes back as text with an ordinary stop reason."),
    (75, "formats", "A tool without a description gets the shortest one that Bedrock accepts."),
    # Usage, stop reasons, caching, citations, refusals
    (76, "core", "Cached tokens are counted inside or outside the input as each API does, and the sums agree."),
    (77, "core", "Reasoning tokens count as output; running totals are replaced by later ones, never added up."),
    (78, "streams", "Usage that comes late in a stream replaces what came early, in a chunk of its own too."),
    (79, "core", "Every stop reason maps both ways, with its raw word; with calls, the reason is that of calls."),
    (80, "core", "Tools and schema keys keep their order."),
    (81, "core", "Cache marks cross with their lifetime, four at most."),
    (82, "core", "Citations stay with their text and are replayed with it."),
    (83, "core", "A refusal is a part of its own and a finish reason of its own."),
    (84, "formats", "Without stored state, Responses item ids are left out and encrypted reasoning stays."),
    (85, "formats", "Stop sequences are honoured or reported where Responses has no place for them."),
)

VALUES: tuple[tuple[str, str], ...] = (
    ("seed-tables", "Every cell of the five conversion tables of the first specification holds, literally."),
    ("round-trip", "A value that is encoded alone and decoded alone is the same call, result, definition or choice."),
    ("same-code", "A value converted alone looks exactly as it does within a whole request."),
    ("losses", "What a single value loses is reported with a path that starts at the value."),
    ("acceptance", "A call or result is read from its outer object, its inner object, its message and its JSON text."),
    ("ids", "Calls without an id get one by position; results find their calls, also where the wire has no ids."),
    ("bad-input", "A value that the format does not have raises a typed error with its path in the given value."),
    ("documented", "The examples in the documentation of the one-value functions run."),
)
"""`value:*`: one value at a time."""

SEEDS: tuple[tuple[str, str], ...] = (
    ("weather", "The worked example of the comparison memo crosses exactly, `is_error: false` included."),
    ("multimodal", "A result object beside media reaches Gemini as the object it is."),
    ("speaker", "An answer stored in multi-llm-chat keeps the name of the model that gave it."),
    ("empty-arguments", "Empty arguments followed by real ones for the same call are one call."),
    ("one-turn", "Results stored in separate entries reach Gemini as one turn, in call order."),
    ("whole-call", "Chunk readers report a whole Gemini call when it arrives."),
    ("001-example", "The usage example of the drivers' specification runs on every provider, whole and streamed."),
    ("001-messages", "Messages may be mappings of any format, named or detected; an ambiguous one is a typed error."),
    ("001-tools", "Tools may be mappings; a vendor's entry stays hosted, and an unknown shape is a typed error."),
    ("001-guards", "`has_tool_calls` and `is_tool_result` take values and mappings; an empty list is no call."),
    ("001-streams", "`stream` and `result` of a streamed answer are usable without each other."),
    ("002-events", "Every event of an agent has a literal type; checkers narrow the union down to nothing."),
    (
        "002-records",
        "The record types of the earlier systems are TypedDicts, and the codecs read and write those.",
    ),
    ("002-order", "An answer written for the agent SDK keeps the order of text and calls, in several messages."),
    ("002-outputs", "Sizes that an output reference does not state stay absent; a trimmed output expands through it."),
    ("002-tools", "A tool has a display name, and may return a result of its own kind or text beside pictures."),
    ("002-front-door", "`dragoman ask --tools` and `Agent(name)` take what `dragoman run` takes."),
    ("004-chunks", "A streamed answer is read as unified dicts, and a script is written in them."),
)
"""`seed:*`: what the documents of the earlier systems say literally."""

AGENT: tuple[tuple[str, str], ...] = (
    # Tools
    ("tool-from-function", "A function, sync or async, is a tool; its schema comes from type hints and docstring."),
    ("tool-by-hand", "A tool may bring a schema written by hand, and its arguments are checked against that."),
    ("dependencies", "Dependencies of a tool are made for each call, and tests can replace them."),
    ("bad-arguments", "Arguments that are not JSON or break the schema are reported to the model; nothing runs."),
    ("original-schema", "Arguments are checked against the tool's own schema, whatever the provider was given."),
    ("return-kinds", "A string is text, parts are multimodal, anything else is data."),
    ("tool-exception", "An exception of a tool is an error result with type and message, and no traceback."),
    ("unknown-tool", "A call of a tool that does not exist is answered with the names of those that do."),
    ("tool-timeout", "A tool that exceeds its time limit gives an error result, and the run continues."),
    ("parallel-calls", "Calls of one turn run at the same time unless configured otherwise; results keep their order."),
    # The loop
    ("run", "A run takes text or parts, with or without events, with or without an event loop."),
    ("history", "The history is kept between runs."),
    ("switch-model", "The model can be switched between runs and between calls: signatures, ids, images intact."),
    ("calls-decide", "The calls of an answer decide whether the loop continues, not its stop reason."),
    ("refusal", "A refusal is a final answer."),
    (
        "withheld-calls",
        "A call of an answer that was blocked, failed or cut in it never runs; history stays valid.",
    ),
    ("empty-answer", "An empty answer gets a text in its place."),
    ("forced-choice", "A forced tool choice falls back to auto after the first turn."),
    ("done", "A done tool ends the run with its message; calls after it get results that say they did not run."),
    ("require-done", "If done is required, a text alone does not end the run."),
    (
        "max-iterations",
        "After the last turn the model is asked once without tools; if that fails, a fixed text is the answer.",
    ),
    (
        "no-open-calls",
        "No call stays unanswered: after done, stop, cancel or failure, it gets a result that says it did not run.",
    ),
    # Events
    ("events-json", "Every event is a line of JSON and is read back from it."),
    ("event-order", "Events of a turn come in one order: reasoning, text, usage, and the steps."),
    ("only-final", "A terminal answer gives `final` alone, exactly one, and it is the last event."),
    ("steps", "Steps are named by their calls, numbered through the run, and each that starts completes."),
    ("result-text", "A result as text: parts joined, images marked, the first picture as screenshot."),
    ("durations", "Durations come from the monotonic clock."),
    ("hidden-message", "A message that a hook adds in the user's name is stored, sent, and marked as hidden."),
    ("deltas", "Pieces of text are reported as they arrive, if requested."),
    ("usage", "Tokens are reported per call and added up per model."),
    # Outputs
    ("output-cut", "Long output is stored whole and cut at whole lines, with a mark that names the reference."),
    ("output-parts", "Pictures stay in the context when their text is stored."),
    ("output-budget", "Beyond a total the oldest outputs are replaced by placeholders, if asked for."),
    ("output-read", "Stored output is read by lines, long lines by windows that cut no character."),
    ("output-grep", "Stored output is searched for a text or an expression, within a time limit and a cap."),
    ("output-tools", "What the reading tools return is never cut again, and a bad reference is a message."),
    ("output-stores", "Outputs are kept in memory or in SQLite; a store that fails never breaks the run."),
    # Permissions
    ("permission", "Each call is allowed, denied, denied and the run stopped, or put to the user."),
    ("permission-rules", "Deny goes before allow before ask; read-only tools may be allowed beforehand."),
    ("permission-nobody", "Without an interactive user a call is denied, and a check that fails is an error result."),
    # Compaction
    ("compaction", "At a share of the context window the history is summarised; the last turns stay whole."),
    ("compaction-window", "An unknown window turns compaction off; it can be forced at any time."),
    (
        "catalogue",
        "Windows, limits, prices and capabilities come from one dated file with sources; what is unknown is None.",
    ),
    ("catalogue-price", "A price counts each token once, by its kind and tier, and is None where one is not known."),
    ("catalogue-own", "Rows of a user's file or of code come before those of the release."),
    ("compaction-failure", "A summary that is empty or fails leaves the history as it was."),
    ("compaction-retained", "What was retained once is retained by every later compaction."),
    # Cancelling and retries
    ("cancel", "A run can be cancelled before and during a call of the model or of a tool; there is no `final`."),
    ("cancel-next", "After a cancelled run the history is valid for the next one."),
    ("retries", "Retries of the driver are events."),
    # Sessions
    ("session", "A session is an append-only log of events and a state to continue from; sessions can be listed."),
    ("session-crash", "An incomplete last line is repaired, open calls are answered, and a killed run can continue."),
    ("session-usage", "A session has its tokens per model."),
    # MCP
    ("mcp", "Servers over stdio and streamable HTTP give tools, named within the rule for names."),
    ("mcp-results", "Results of a server keep their kind: text, picture, resource, structured, error."),
    ("mcp-failures", "A server that dies or hangs gives error results; all are shut down in their own event loop."),
    ("mcp-json", "Servers are read from mcp.json in its usual shape."),
    # The command
    ("command", "`dragoman run` takes a prompt and tools, and shows what happens."),
    ("command-json", "`dragoman run --json` writes event lines and nothing else to stdout."),
    ("command-session", "`dragoman run --session` continues where the last one ended."),
    ("command-approve", "`dragoman run --approve` asks, allows or denies."),
    ("command-end", "`dragoman run` has documented exit codes, and Ctrl-C leaves a valid history."),
    # Everywhere
    ("same-story", "The same scenario gives the same events on the simulators of all providers, over HTTP."),
    ("mcp-requests", "Servers may ask for a completion and for the user's answers, where the caller allows it."),
    ("mcp-resources", "Resources and prompts of servers are listed and read."),
    ("mcp-reconnect", "A server that is gone is connected again at the next call."),
    # Composition
    ("toolsets", "Toolsets are combined, prefixed, filtered, renamed, approved, and run in parallel or one by one."),
    ("sub-agents", "An agent as a tool has its own history, nested events, and tokens that count for its caller."),
    ("hand-off", "A tool hands the conversation to another model in the middle of a loop."),
    ("hosted-tools", "Tools that the provider runs can be combined with own ones."),
    ("as-model", "`dragoman serve --agent` makes an agent a model for every SDK, its tools shown as reasoning."),
    ("front-ends", "Events stream as AG-UI, as UI messages of the Vercel AI SDK, and as JSON Lines."),
    ("approvals", "Front ends decide about waiting calls; only those run, once, and only after an explicit approval."),
    ("client-tools", "A served agent's model may call the client's tools; their results continue the run."),
    ("spans", "OpenTelemetry spans by the GenAI conventions for agent, model and tool, without any text of messages."),
    ("record-replay", "Whole runs are recorded without keys and replayed through the wire formats."),
    ("assert-calls", "Tests assert which tools were called, in order or not."),
    ("eval", "`dragoman eval` runs cases against several models: pass, cost and time with confidence intervals."),
    # Typed answers, retries, limits, approvals
    (
        "typed-output",
        "Answers are values of a type, in three modes, corrected by the model, partial while streaming.",
    ),
    ("retry", "A tool that raises `Retry` gives the model its reason; attempts are limited per tool."),
    ("idempotent", "Only an idempotent tool is called again automatically; every attempt has the same key."),
    ("limits", "Requests, tool calls, tokens, cost and time of a run are limited; it ends with a valid history."),
    ("pending", "Waiting calls end the run; decisions continue it in another process, or are refused as a whole."),
    (
        "bad-input",
        "Invalid outputs, decisions, schemas and limits give an error that says what to do; history stays valid.",
    ),
    ("instructions", "Instructions are functions of dependencies; history processors change only what is sent."),
    ("context-error", "A request that is too long for the model is compacted and sent again."),
    ("documented", "The examples of docs/agent.md run."),
    ("flat", "A run of a thousand steps adds no memory beyond its history and little time per step."),
)

COMMAND: tuple[tuple[str, str], ...] = (
    (
        "key-store",
        "Keys of providers are stored in the keyring or a private file, used by commands, never shown.",
    ),
    ("one-configuration", "`ask`, `run`, `chat` and `serve` read one file: default model, providers, routes."),
    ("clear-errors", "A mistake on the command line, in an address or a port gives one line that says what to do."),
)
"""`command:*`: what all commands share."""

GATEWAY: tuple[tuple[str, str], ...] = (
    (
        "costs",
        "Each request has its cost, by the catalogue or by own prices, and an estimate before that.",
    ),
    (
        "cache",
        "Equal requests to a model get one answer, whole or streamed, in each client's format; never a bad one.",
    ),
    ("embeddings", "Texts are embedded by any provider for a client of any API, with vendors' SDKs on both sides."),
    (
        "mcp",
        "Tools of MCP servers are run for clients that ask, with permissions and limits; `/mcp` is a server itself.",
    ),
    (
        "realtime",
        "Realtime WebSockets pass unchanged to an upstream that has them, with the keys and limits of other requests.",
    ),
    ("token-budget", "A key has a budget in currency, in tokens, or both; requests in progress reserve both."),
    (
        "operations",
        "Health, readiness, logs, checks, the OpenAPI description and the files of deploy/ agree with the gateway.",
    ),
    (
        "six-protocols",
        "All 36 pairs of the six protocols of the public comparison cross, whole, streamed and in errors.",
    ),
    ("addresses", "Addresses that real clients of known formats use are endpoints of their formats, not 404."),
    (
        "attacks",
        "Malformed answers, odd headers, large bodies and mistakes in a configuration harm one request at most.",
    ),
    # In
    ("doors", "Every format has its paths, also those of Vertex AI and Azure, and lists of models in its own shape."),
    ("auth-styles", "A key is read wherever the client's SDK puts it."),
    ("own-words", "Errors reach each client in the shape and the wording of its format."),
    ("own-words-midstream", "An error within a stream reaches each client in the form of its format."),
    (
        "count-tokens",
        "Tokens are counted by an upstream of the same format; for others they are estimated and marked as such.",
    ),
    # Through
    ("pairs", "A conversation with parallel calls crosses between all formats, streamed and not."),
    ("same-bytes", "Between equal formats bytes pass unchanged, and only the name of an aliased model is replaced."),
    ("interactions", "Interactions are kept, followed, resumed, cancelled and deleted whatever the upstream keeps."),
    ("sdks", "The vendors' own SDKs run a tool loop through the gateway to providers of all families."),
    ("agents", "What coding agents send is understood by providers of all families."),
    ("recipe-sdks", "The vendors' SDKs run a tool loop with nothing but the variables that are printed."),
    ("recipe-agents", "Claude Code, Codex CLI, Gemini CLI and opencode run a tool loop, set up by what is printed."),
    ("bedrock-clients", "Claude Code on Bedrock and ChatBedrock run a tool loop by InvokeModel to other families."),
    (
        "recipe-frameworks",
        "Vercel AI SDK, LangChain, pydantic-ai and llm run a tool loop in their formats, set up by what is printed.",
    ),
    ("usage", "Tokens are counted for each request, also if its bytes pass unchanged."),
    ("losses", "What did not cross is reported in a header and in the log; a strict route refuses."),
    ("no-delay", "Each piece of a stream is sent as soon as it arrives."),
    # Where to
    ("no-config", "`provider/model` needs no configuration; without any keys the simulators answer."),
    (
        "names",
        "A model without a provider goes to the vendor that its name shows, in the client's own format if possible.",
    ),
    ("routes", "Routes have aliases, patterns, weights, fallbacks and settings of their own."),
    ("config-errors", "A mistake in the configuration is reported with file, line and column."),
    ("reload", "A new configuration drops no stream, and one with mistakes changes nothing."),
    # When things fail
    ("fallback", "Before the first byte a failure leads to the fallbacks that the configuration names."),
    ("sent-once", "A request is sent to the same model again only if it provably was not processed."),
    ("broken-answers", "A success without an answer is a 502 in the client's shape, and permits the fallback."),
    ("breaker", "A model that fails repeatedly is not called for a while, then tried once."),
    ("breaker-per-model", "One model's failures and rate limits stop no other; its 429 stays a 429 with retry-after."),
    ("whose-key", "When a provider refuses the gateway's own key, the error says that it is not the client's key."),
    ("timeouts", "A slow or dead upstream delays its own requests only."),
    ("disconnect", "If a client disconnects, its request upstream is cancelled at once."),
    # Responses
    ("responses-state", "A response is kept and can be followed, fetched, listed and deleted, whatever the upstream."),
    ("responses-background", "A response may be made in the background, and cancelled."),
    (
        "signature-memory",
        "What vendors sign is remembered per key, bounded and for a while; without that, placeholders are reported.",
    ),
    (
        "signatures-survive-clients",
        "What Gemini and Claude sign comes back to them through real clients that drop, move, merge and split it.",
    ),
    (
        "message-threads",
        "Threads of Anthropic's SDK are kept for upstreams that have none; for an unknown one the SDK sends all.",
    ),
    (
        "conversations",
        "Conversations are kept, listed, changed and deleted; responses of any upstream continue and extend them.",
    ),
    (
        "open-responses",
        "Responses, whole, streamed or by WebSocket, have every member of the public schema and repeat their request.",
    ),
    # Safe by default
    ("loopback", "It listens on this machine only, and elsewhere only with keys."),
    ("keys", "Keys are kept as digests, scoped to models, expire, and can be revoked."),
    (
        "key-ids",
        "Data of a key belongs to its id: another key of the same name, or in the same position, cannot reach it.",
    ),
    ("key-models", "Lists of models, in every format, have those that the key may use, under names that it may use."),
    ("private-files", "Databases, histories and logs are created for their owner alone."),
    ("limits", "Requests, also for token counts, concurrency and money are limited by key."),
    (
        "budget-reserved",
        "A request's expected cost counts until its true one is written, so concurrent requests cannot overspend.",
    ),
    ("limits-exact", "No limit of a key is exceeded, however many workers and gateways are used at once."),
    (
        "costs-exact",
        "The cost of a finished answer is never lost and never counted twice, even if a gateway dies.",
    ),
    ("leases", "After a gateway dies its requests stop counting, so no key is locked out."),
    ("database-away", "Without its database a gateway refuses keys stored in it, and writes usage once it is back."),
    ("disk-failures", "On a full or read-only disk requests are answered, and what is not recorded is reported."),
    ("clock-jumps", "A clock that is set forward or back neither locks a key out nor lifts a limit."),
    ("many-gateways", "If one of two gateways behind a balancer dies, only its own requests are lost."),
    (
        "workers",
        "Workers share limits, add up their counts, forward requests for the page, and are replaced if they die.",
    ),
    (
        "bad-input",
        "Malformed, oversized, deep, slow or smuggled requests get the right status and harm no other.",
    ),
    ("no-secrets", "Keys appear in no log, no error and no page."),
    ("no-ssrf", "Nothing in a request changes which host is called."),
    ("shutdown", "At shutdown streams may end, and new connections are refused."),
    # Watching
    ("metrics", "Prometheus reads requests, tokens, losses, failures and latencies."),
    ("log", "Each request is one line of JSON, without its body."),
    ("telemetry", "OpenTelemetry gets a span of each request and attempt, if enabled, without any text of messages."),
    ("command", "`dragoman serve`, `dragoman keys` and `dragoman usage` do what they say."),
    (
        "http-conformance",
        "Requests that two servers could read in two ways are refused; what clients may send is answered.",
    ),
    ("http2", "Clients may speak HTTP/2, over TLS and without."),
    ("http2-abuse", "Floods of frames, resets, streams or headers end their connection and harm no other."),
    ("tls", "With a certificate the gateway serves HTTPS; a renewed one is used from the next connection on."),
    ("admission", "No byte of a body is read before the key is checked; slow or large requests delay no others."),
    ("slow-readers", "Clients that do not read their answers hold neither memory nor a connection."),
    ("unpacking", "Compressed bodies of clients and upstreams are decompressed completely, within the limits."),
    ("documented", "The examples of docs/gateway.md are right."),
    (
        "batches",
        "Batches of three vendors' APIs pass to a provider that has them; others run here, and survive a restart.",
    ),
    (
        "pass-through",
        "Images, audio, moderations, files and the like pass byte-exact to an upstream that has them, else: 501.",
    ),
    # The page
    (
        "page-views",
        "A request is shown as the client sent it, decoded, and as the upstream got it; the answer likewise.",
    ),
    ("page-feed", "Requests appear on the page as they happen, each change sent once."),
    (
        "page-list",
        "Requests are listed with error, key, tokens, cost and latency; sorted, filtered, and charted.",
    ),
    ("page-losses", "A loss on the page leads to its place; a failed request is never shown as one without losses."),
    ("page-timeline", "A stream is shown over time, with the bytes that came and left at each moment."),
    ("page-own", "A user with a key sees the requests of that key alone, and not which keys the gateway has."),
    ("page-no-secrets", "Keys are removed from what the page shows."),
    ("page-bounds", "Requests held for the page are bounded by number and bytes; the oldest are dropped."),
    ("page-off", "Without a page no requests are held."),
    ("page-inert", "Output of models and clients is shown as text and never run."),
    ("page-keyboard", "Everything on the page can be done with the keyboard."),
    (
        "playground",
        "A body of any format is shown in every other, with its losses and a description; errors by position.",
    ),
    ("playground-run", "A request in the playground is sent to any model, with answer, cost, time and losses."),
)

CHAT: tuple[tuple[str, str], ...] = (
    # The service
    ("mention", "A message goes to the models it names at its start, as whole words; `@all` names all."),
    ("mention-kept", "Models read the mention as well, and so know which turns were meant for others."),
    ("memo", "A memo is stored, sent to no model and seen later; other text goes to the default model."),
    ("unknown-name", "A message for a name that no model has is not sent, and the nearest name is suggested."),
    ("simulated", "Answers of simulators say so everywhere, and their conversations are stored apart."),
    ("foreign-format", "A message can be sent in another API's format; the translation and its losses are shown."),
    ("all", "All models are asked at once, from the same snapshot; answers are stored in the models' order."),
    ("all-failure", "A model that fails or is not configured does not stop the others."),
    ("views", "Each model sees the user's turns and its own."),
    ("share", "Answers of others are shared where asked for, with their names."),
    ("tools-owned", "Calls and results belong to their model and reach no other, even where ids are the same."),
    ("events", "Text, reasoning and tools are streamed as the agent's events."),
    ("tools", "Tools come from Python files and MCP servers, for all models."),
    ("permissions", "Tools that change something are asked about in the front end."),
    ("failures-stored", "Errors, refusals, cut and empty answers are shown as such, and stored."),
    ("partial", "What a failed answer has brought is kept and marked, finished calls included."),
    ("stop", "Answers can be stopped one by one or together; what has come is kept."),
    ("busy", "While answers are in progress another message is refused, and the user is informed."),
    ("retry", "An answer can be requested again, from the same snapshot; the old one is kept."),
    ("model", "Another model can take over a name, or join, in the middle of a conversation."),
    ("attachments", "Pictures and files reach the model, and are saved."),
    ("system-prompt", "The system prompt and settings of a conversation are sent."),
    # The format of the earlier program
    (
        "format-repair",
        "Histories of every kind are repaired without being changed: strings, bare parts, invalid entries.",
    ),
    ("format-check", "An invalid entry is refused with a reason."),
    ("format-text", "Content becomes text, in its order, with compact JSON of calls if requested."),
    ("format-payload", "A tool's result is an object for Gemini, whatever its type was."),
    ("format-history", "A history is formatted for Gemini, ChatGPT and Claude; other content is refused."),
    ("chunks", "Streams become chunks of text and whole calls, each once; calls that were cut are left out."),
    # History
    ("store", "Conversations are saved, loaded, listed, renamed and deleted; times and revisions are kept."),
    ("store-users", "Users do not see each other's conversations."),
    ("store-sql", "SQLite is a store with the same behaviour."),
    ("store-postgres", "PostgreSQL is a store by an extra."),
    ("search", "Conversations are found by their words."),
    ("two-writers", "A save must name the revision it read: unseen changes are never overwritten."),
    ("names", "Names become file names that are valid on any system, without collisions."),
    ("atomic", "A save is all or nothing."),
    ("schema", "Files have a schema version, and unknown keys survive."),
    ("legacy", "Files of the earlier program load, with calls and results in their place."),
    ("location", "Folder and user come from the environment."),
    ("draft", "An unsaved conversation is kept as a draft, and offered after its program has ended."),
    ("crash", "A program that is killed in mid-answer loses nothing that was shown."),
    ("export", "A conversation is exported as Markdown, JSON and every format."),
    ("import", "What was exported is read again, from every format."),
    ("show-as", "An answer is shown in any wire format, with the losses."),
    # Tokens
    ("token-estimate", "Tokens are counted exactly where a tokenizer is there, else estimated, for any script."),
    ("token-lazy", "A tokenizer that has to be fetched or is missing delays no answer."),
    (
        "token-reported",
        "Counts that a provider reported for earlier answers correct the estimate, also after a reload.",
    ),
    ("tokens-reported", "Tokens that the provider reports are stored with the answer."),
    ("window", "The context limit of a model comes from the environment or from a table."),
    ("prune", "What does not fit is left out by oldest whole turns; pairs and the system prompt stay."),
    ("does-not-fit", "When nothing more can be left out, sending is refused with the reason."),
    ("gauge", "Each model shows how full its window is."),
    # The terminal
    ("terminal", "`dragoman chat` streams answers with tools and errors, in a terminal and through a pipe."),
    ("terminal-commands", "Every command of the terminal does what its help says."),
    ("terminal-markdown", "Markdown is rendered while it arrives."),
    ("terminal-tools", "A call has a panel with its arguments and its result, where it happened."),
    ("terminal-errors", "Errors, refusals, empty and cut answers and further tries are always on the screen."),
    ("terminal-columns", "Several answers are side by side if the terminal is wide enough; wide characters fit."),
    ("terminal-resize", "A terminal may change its size during an answer."),
    ("terminal-plain", "NO_COLOR turns colours off, a dumb terminal gets plain lines."),
    ("terminal-interrupt", "Ctrl-C stops the answers and not the program."),
    ("terminal-input", "Input is completed, and may have several lines."),
    ("terminal-draft", "A draft that was left behind is offered."),
    # The web
    ("web", "`dragoman chat --web` serves the conversations, streamed, to a browser."),
    ("web-resume", "A page that is reloaded continues a running answer."),
    ("web-safe", "Requests from other sites and hosts are refused, and model output is never executed."),
    ("web-keys", "Beyond this machine the page asks for a password."),
    ("web-tabs", "Two tabs do not overwrite each other's work."),
    ("web-browser", "A real browser shows columns, tools, errors and exports."),
    ("web-drop", "Pictures and files are dropped onto the page, and sent."),
    ("web-accessible", "The page can be used by keyboard and screen reader, in dark and light."),
    ("web-fluid", "A conversation of a thousand messages stays fluid."),
    # Everywhere
    ("demo", "One command without keys shows four models that call a tool."),
    ("chat-documented", "The statements of docs/chat.md are true."),
)

WEB: tuple[tuple[str, str], ...] = (
    ("built", "The page that ships was built from its sources, and needs nothing but itself."),
    ("front", "Browsers find the page at `/`; clients of the gateway do not notice it."),
    ("places", "One page has five sections, reached by mouse and keyboard, and each keeps what was typed in it."),
    ("accessible", "axe-core finds no accessibility problem on the page, in dark and light, on a phone."),
    ("chat", "The chat of a gateway has the models that it reaches; requests pass through it with the user's own key."),
    ("keys", "Only the administrator makes, replaces and revokes keys on the page; a key is shown once."),
    ("usage", "Usage is shown by key and model over time; each key sees its own."),
    ("login-throttled", "After a wrong password the next attempts wait before their passwords are looked at."),
    ("login", "If a gateway has keys, the page asks for one, or for a password, until the key is revoked."),
)

FRONT: tuple[tuple[str, str], ...] = (
    ("exports", "Every type a program needs is importable from `dragoman`, typed, and importing stays cheap."),
    ("constructors", "Results, messages and choices are built as the specification and programs write them."),
    ("checked", "A value built wrongly is an error at that line: the field, what was expected, what was found."),
    ("typed", "A program that uses the public API passes mypy and pyright in strict mode."),
    ("same-values", "Values built by programs and by decoders have the same classes."),
    ("pages-run", "The pages about the four types and about other libraries run as printed."),
    ("pages-are-true", "Files, commands, options and targets of the Makefile that a page names exist."),
    ("site", "The documentation site builds without a warning; its links work, its programs run as printed."),
    ("examples", "The programs of examples/ run as their README says."),
    ("release", "The sdist and the wheel are the same bytes each time, complete, and each extra works alone."),
    ("install-advice", "An error about a missing package names the command that adds it to this installation."),
)
"""`front:*`: the types that `dragoman` exports."""

BATCH: tuple[tuple[str, str], ...] = (
    ("sources", "Records of any layout, compression and place are the same records."),
    ("sinks", "Output appears whole or not at all, as one file or as shards, compressed or as a table."),
    ("tables", "A table of Parquet, Arrow or SQLite that was written gives the same records when it is read."),
    ("rejects", "A bad record goes to the reject file with line, path and reason, without its contents; others go on."),
    ("detection", "The format is found once per source, and a record of another format is still read as what it is."),
    ("options", "Filters, samples, strict and dry runs do what they say, the same every time."),
    ("report", "The report counts every record and every loss, as JSON and as a page."),
    ("bad-input", "An impossible job is a clear error before anything is written."),
    ("lines", "Lines and Arrow tables in memory are converted by the same code."),
    ("deterministic", "Any number of processes gives the same bytes in the same order."),
    ("resumable", "After kill -9 the same command continues, and the output is that of an undisturbed run."),
    ("memory", "Memory does not grow with the size of the input."),
    ("command", "`dragoman batch` says what it did and ends with a code that scripts can use."),
    ("progress", "A terminal shows a bar with rate, time left and rejects; a pipe gets plain lines."),
    (
        "datasets",
        "Stored conversations of every supported format are read, and written in those that programs still write.",
    ),
    ("provider-files", "Batch files of providers become those of others, requests and results, with their ids."),
    (
        "inference",
        "A file of requests is answered in order, within limits; an answer that was received is not requested again.",
    ),
    ("page", "The commands and programs of docs/bulk.md run as printed."),
    (
        "recordings",
        "Recorded traffic converts completely, without naming its format; a record is rejected for its own fault only.",
    ),
    (
        "ugly-files",
        "Files are read by what is in them, not by their names; what cannot be read is rejected with its line.",
    ),
    (
        "llm-logs",
        "The database of the command `llm` is read conversation by conversation, along the branch of its tip.",
    ),
    ("simulators", "The simulators run batch jobs of three vendors as their SDKs expect, and fail them on request."),
    ("job-states", "States of batch jobs are one vocabulary; a state that is not known is reported as it came."),
    (
        "jobs",
        "A file becomes a batch job of a provider; results join their requests in order, in the format asked for.",
    ),
    ("job-retry", "Only requests of a batch job that failed temporarily or never ran go into a new job."),
    ("job-file", "A batch job outlives the process that made it, in a private file without keys."),
    ("ray", "A Ray cluster writes the same shards, rejects and report, also when a worker dies."),
)
"""`batch:*`: `dragoman batch` and `dragoman.batch`."""

PROMISES: dict[str, Promise] = {
    promise.id: promise
    for promise in (
        *(Promise(f"law:{name}", text, due) for name, due, text in LAWS),
        *(Promise(f"core:{name}", text, "core") for name, text in CORE),
        *(Promise(f"report:{number}", text, due) for number, due, text in REPORTS),
        *(Promise(f"value:{name}", text, "core") for name, text in VALUES),
        *(Promise(f"seed:{name}", text, "core") for name, text in SEEDS),
        *(Promise(f"agent:{name}", text, "agent") for name, text in AGENT),
        *(Promise(f"command:{name}", text, "agent") for name, text in COMMAND),
        *(Promise(f"chat:{name}", text, "chat") for name, text in CHAT),
        *(Promise(f"gateway:{name}", text, "gateway") for name, text in GATEWAY),
        *(Promise(f"web:{name}", text, "web") for name, text in WEB),
        *(Promise(f"front:{name}", text, "core") for name, text in FRONT),
        *(Promise(f"batch:{name}", text, "batch") for name, text in BATCH),
    )
}
