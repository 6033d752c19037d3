"""What keeps the texts, folders and files of others from doing harm: file modes, processes, plain text."""
