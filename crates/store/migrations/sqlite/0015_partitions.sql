-- History is partitioned on PostgreSQL only. Here a page of a table is used again when its rows are forgotten.
SELECT 1;
