"""The twenty tools of the agent history: names, descriptions and schemas of the size and depth real agents declare."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    name: str
    description: str
    parameters: dict[str, object]


def _field(kind: str, description: str, **more: object) -> dict[str, object]:
    return {"type": kind, "description": description, **more}


def _text(description: str, **more: object) -> dict[str, object]:
    return _field("string", description, **more)


def _whole(description: str, **more: object) -> dict[str, object]:
    return _field("integer", description, **more)


def _flag(description: str, *, default: bool) -> dict[str, object]:
    return _field("boolean", description, default=default)


def _list(description: str, items: dict[str, object], **more: object) -> dict[str, object]:
    return _field("array", description, items=items, **more)


def _object(properties: dict[str, object], *required: str) -> dict[str, object]:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


WEATHER = Tool(
    name="get_weather",
    description="Current weather and a short forecast for one place.",
    parameters=_object(
        {
            "location": _text("City and country, for example Tokyo, Japan"),
            "unit": _text("Unit of the temperatures", enum=["celsius", "fahrenheit"]),
            "days": _whole("How many days ahead", minimum=1, maximum=10),
        },
        "location",
    ),
)

_FILE_TOOLS = (
    Tool(
        name="read_file",
        description="Reads a file of the workspace and returns its lines with numbers. Long files come in slices: give "
        "offset and limit. Binary files are refused.",
        parameters=_object(
            {
                "path": _text("Path from the root of the workspace"),
                "offset": _whole("First line to return, counted from 1", minimum=1, default=1),
                "limit": _whole("How many lines to return", minimum=1, maximum=2000, default=400),
            },
            "path",
        ),
    ),
    Tool(
        name="write_file",
        description="Creates a file or replaces its whole content. Folders on the way are made. Prefer edit_file for "
        "changes to a file that exists.",
        parameters=_object(
            {
                "path": _text("Path from the root of the workspace"),
                "content": _text("The whole new content"),
                "mode": _text("Unix permissions in octal", pattern="^[0-7]{3,4}$"),
            },
            "path",
            "content",
        ),
    ),
    Tool(
        name="edit_file",
        description="Replaces exact pieces of text in a file. Every old_text has to occur exactly once, or replace_all "
        "must be set; otherwise nothing is changed.",
        parameters=_object(
            {
                "path": _text("Path from the root of the workspace"),
                "edits": _list(
                    "Edits, applied in order",
                    _object(
                        {
                            "old_text": _text("The text to find, with its indentation", minLength=1),
                            "new_text": _text("The text to put in its place"),
                            "replace_all": _flag("Replace every occurrence", default=False),
                        },
                        "old_text",
                        "new_text",
                    ),
                    minItems=1,
                ),
                "dry_run": _flag("Only show what would change", default=False),
            },
            "path",
            "edits",
        ),
    ),
    Tool(
        name="list_directory",
        description="Lists a folder: names, sizes, kinds and times of last change. Ignored files are left out.",
        parameters=_object(
            {
                "path": _text("Path from the root of the workspace", default="."),
                "depth": _whole("How many levels to descend", minimum=1, maximum=8, default=1),
                "ignore": _list("Glob patterns to leave out", {"type": "string"}),
            }
        ),
    ),
    Tool(
        name="search_text",
        description="Searches file contents with a regular expression and returns matching lines, grouped by file.",
        parameters=_object(
            {
                "pattern": _text("Regular expression"),
                "path": _text("Folder or file to search", default="."),
                "include": _list("Glob patterns of files to search", {"type": "string"}, maxItems=20),
                "case_sensitive": _flag("Whether letters have to match in case", default=True),
                "context": _whole("Lines to show around a match", minimum=0, maximum=20, default=0),
                "output": _text("What to return", enum=["lines", "files", "counts"], default="lines"),
            },
            "pattern",
        ),
    ),
)

_SHELL_TOOLS = (
    Tool(
        name="run_command",
        description="Runs a shell command in the workspace and returns exit code, standard output and standard error. "
        "Commands that need a terminal are refused; long ones are stopped after the time limit.",
        parameters=_object(
            {
                "command": _text("The command line"),
                "working_directory": _text("Folder to run in", default="."),
                "timeout_seconds": _field("number", "Time limit", minimum=0.1, maximum=600, default=120),
                "environment": {
                    "type": "object",
                    "description": "Variables to set for the command",
                    "additionalProperties": {"type": "string"},
                },
            },
            "command",
        ),
    ),
    Tool(
        name="git_log",
        description="The history of a branch or file: hash, author, date and subject of each commit.",
        parameters=_object(
            {
                "revision": _text("Branch, tag or hash", default="HEAD"),
                "path": _text("Only commits that touch this path"),
                "since": _text("Only commits after this date", format="date"),
                "limit": _whole("How many commits", minimum=1, maximum=200, default=20),
            }
        ),
    ),
    Tool(
        name="git_diff",
        description="The difference between two revisions, or between a revision and the working tree.",
        parameters=_object(
            {
                "base": _text("Older revision", default="HEAD"),
                "head": {"anyOf": [{"type": "string"}, {"type": "null"}], "description": "Newer one; null: the files"},
                "paths": _list("Only these paths", {"type": "string"}),
                "stat": _flag("Only names and counts", default=False),
            }
        ),
    ),
    Tool(
        name="run_tests",
        description="Runs the test suite, or a part of it, and returns a summary with the first failures.",
        parameters=_object(
            {
                "select": _list("Files or test names", {"type": "string"}),
                "keyword": _text("Expression the names have to match"),
                "stop_after": _whole("Stop after this many failures", minimum=1, default=5),
                "coverage": _flag("Measure coverage too", default=False),
            }
        ),
    ),
)

_TEAM_TOOLS = (
    Tool(
        name="create_issue",
        description="Opens an issue in the tracker of the current project and returns its number and address.",
        parameters=_object(
            {
                "title": _text("One line", maxLength=200),
                "body": _text("Markdown"),
                "labels": _list("Labels", {"type": "string", "enum": ["bug", "feature", "question", "docs", "chore"]}),
                "assignee": {"anyOf": [{"type": "string"}, {"type": "null"}], "description": "Login name, or nobody"},
                "milestone": _object(
                    {"title": _text("Name of the milestone"), "due": _text("Day it is due", format="date")}, "title"
                ),
            },
            "title",
            "body",
        ),
    ),
    Tool(
        name="send_message",
        description="Sends a message to a channel or a person of the team chat.",
        parameters=_object(
            {
                "channel": _text("Channel or login name", pattern="^[#@][a-z0-9._-]+$"),
                "text": _text("Markdown, at most 4000 characters", maxLength=4000),
                "attachments": _list(
                    "Files of the workspace to attach",
                    _object({"path": _text("Path of the file"), "title": _text("Shown name")}, "path"),
                    maxItems=10,
                ),
                "thread": _text("Message to answer"),
            },
            "channel",
            "text",
        ),
    ),
    Tool(
        name="schedule_meeting",
        description="Puts a meeting in the calendars of its attendees, at the first time that suits everybody.",
        parameters={
            **_object(
                {
                    "subject": _text("One line"),
                    "attendees": _list("Who takes part", {"$ref": "#/$defs/attendee"}, minItems=1),
                    "window": _object(
                        {
                            "earliest": _text("Not before", format="date-time"),
                            "latest": _text("Not after", format="date-time"),
                        },
                        "earliest",
                        "latest",
                    ),
                    "minutes": _whole("Length", minimum=15, maximum=180, default=30),
                },
                "subject",
                "attendees",
                "window",
            ),
            "$defs": {
                "attendee": _object(
                    {
                        "email": _text("Address", format="email"),
                        "optional": _flag("May be left out if no time suits", default=False),
                    },
                    "email",
                )
            },
        },
    ),
    Tool(
        name="update_plan",
        description="Replaces the plan shown to the user. Exactly one step may be in progress.",
        parameters=_object(
            {
                "explanation": _text("Why the plan changes"),
                "steps": _list(
                    "All steps, in order",
                    _object(
                        {
                            "title": _text("Short name of the step"),
                            "status": _text("State", enum=["pending", "in_progress", "done", "dropped"]),
                            "notes": _list("What was found out", {"type": "string"}),
                        },
                        "title",
                        "status",
                    ),
                ),
            },
            "steps",
        ),
    ),
)

_DATA_TOOLS = (
    Tool(
        name="query_database",
        description="Runs a read-only query against the reporting database. Filters are joined with and; the result is "
        "a list of rows as JSON.",
        parameters=_object(
            {
                "table": _text("Name of a table or view"),
                "columns": _list("Columns to return; all when empty", {"type": "string"}),
                "filters": _list(
                    "Conditions",
                    _object(
                        {
                            "column": _text("Column to test"),
                            "operator": _text("Comparison", enum=["=", "!=", "<", "<=", ">", ">=", "in", "like"]),
                            "value": {
                                "description": "What to compare with",
                                "anyOf": [
                                    {"type": "string"},
                                    {"type": "number"},
                                    {"type": "boolean"},
                                    {"type": "array", "items": {"type": "string"}},
                                ],
                            },
                        },
                        "column",
                        "operator",
                        "value",
                    ),
                ),
                "order_by": _list(
                    "Sorting",
                    _object({"column": _text("Column"), "descending": _flag("Largest first", default=False)}, "column"),
                ),
                "limit": _whole("How many rows", minimum=1, maximum=1000, default=50),
            },
            "table",
        ),
    ),
    Tool(
        name="http_request",
        description="Makes an HTTP request to one of the allowed hosts and returns status, headers and body.",
        parameters=_object(
            {
                "method": _text("HTTP method", enum=["GET", "POST", "PUT", "PATCH", "DELETE"]),
                "url": _text("Absolute address", format="uri"),
                "headers": {
                    "type": "object",
                    "description": "Headers to send",
                    "additionalProperties": {"type": "string"},
                },
                "query": {
                    "type": "object",
                    "description": "Query parameters",
                    "additionalProperties": {"type": "string"},
                },
                "body": _text("Body to send"),
                "timeout_seconds": _field("number", "Time limit", minimum=0.1, maximum=60),
            },
            "method",
            "url",
        ),
    ),
    Tool(
        name="fetch_page",
        description="Fetches a web page and returns its readable text, without navigation and advertisements.",
        parameters=_object(
            {
                "url": _text("Absolute address", format="uri"),
                "question": _text("What you want to know from the page"),
                "max_characters": _whole("Cut the text here", minimum=500, maximum=100000, default=20000),
            },
            "url",
        ),
    ),
    Tool(
        name="draw_chart",
        description="Draws a chart from series of numbers and stores it as a picture in the workspace.",
        parameters=_object(
            {
                "kind": _text("Kind of chart", enum=["line", "bar", "area", "scatter", "pie"]),
                "title": _text("Title above the chart"),
                "series": _list(
                    "What to draw",
                    _object(
                        {
                            "name": _text("Name in the legend"),
                            "points": _list(
                                "Points",
                                {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2},
                            ),
                            "style": _object(
                                {
                                    "color": _text("Colour", pattern="^#[0-9a-f]{6}$"),
                                    "width": _field("number", "Line width", minimum=0.5, maximum=8),
                                }
                            ),
                        },
                        "name",
                        "points",
                    ),
                    minItems=1,
                ),
                "axes": _object(
                    {
                        "x": _object({"label": _text("Text"), "logarithmic": _flag("Scale", default=False)}),
                        "y": _object({"label": _text("Text"), "logarithmic": _flag("Scale", default=False)}),
                    }
                ),
            },
            "kind",
            "series",
        ),
    ),
    Tool(
        name="book_travel",
        description="Looks for connections and books the cheapest one that fits the constraints. Asks before it pays.",
        parameters=_object(
            {
                "origin": _text("Station or airport code", minLength=3, maxLength=3),
                "destination": _text("Station or airport code", minLength=3, maxLength=3),
                "departure": _text("Earliest departure", format="date-time"),
                "passengers": _list(
                    "Who travels",
                    _object(
                        {
                            "name": _text("As in the passport"),
                            "age": _whole("Years", minimum=0, maximum=120),
                            "seat": _text("Wish", enum=["window", "aisle", "any"], default="any"),
                        },
                        "name",
                        "age",
                    ),
                    minItems=1,
                    maxItems=9,
                ),
                "constraints": _object(
                    {
                        "max_price": _field("number", "In euros", exclusiveMinimum=0),
                        "max_stops": _whole("Changes on the way", minimum=0, maximum=4),
                        "carriers": _list("Only these carriers", {"type": "string"}),
                    }
                ),
            },
            "origin",
            "destination",
            "departure",
            "passengers",
        ),
    ),
    Tool(
        name="translate_text",
        description="Translates text between languages and keeps markup as it is.",
        parameters=_object(
            {
                "text": _text("What to translate"),
                "target": _text("Language, as a BCP 47 tag"),
                "formality": _text("Tone", enum=["informal", "neutral", "formal"], default="neutral"),
                "glossary": {
                    "type": "object",
                    "description": "Fixed translations of terms",
                    "additionalProperties": {"type": "string"},
                },
            },
            "text",
            "target",
        ),
    ),
)

AGENT_TOOLS = (WEATHER, *_FILE_TOOLS, *_SHELL_TOOLS, *_TEAM_TOOLS, *_DATA_TOOLS)
