"""The report: findings, charts, tables, gallery and files in other formats."""
