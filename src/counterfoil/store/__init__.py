"""Files that commands write and read: run folders, workspaces, tables, the journal."""
