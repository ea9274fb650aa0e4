"""Gemini's generateContent, of the developer API and of Vertex AI."""
