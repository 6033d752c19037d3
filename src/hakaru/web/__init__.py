"""The web app: a JSON API and pages that ask the same service, with limits on who sees what."""
