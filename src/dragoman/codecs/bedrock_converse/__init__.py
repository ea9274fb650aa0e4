"""Amazon Bedrock Converse and ConverseStream."""
