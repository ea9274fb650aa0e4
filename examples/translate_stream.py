"""A stream of one format as a stream of another, each chunk as it comes.

python examples/translate_stream.py openai-chat anthropic-messages < examples/stream.sse
"""

import sys

import dragoman


def main(source: str = "openai-chat", target: str = "anthropic-messages") -> None:
    translator = dragoman.StreamTranslator(source=source, target=target)
    for line in sys.stdin.buffer:
        sys.stdout.buffer.write(translator.feed(line))
        sys.stdout.buffer.flush()
    sys.stdout.buffer.write(translator.close())
    for loss in translator.losses:
        print(loss, file=sys.stderr)


if __name__ == "__main__":
    main(*sys.argv[1:])
