do $$ begin

-- It only adds: the last release neither reads nor writes these columns, and what it signs has no snapshot.
alter table project add column listed boolean not null default false;
-- One without a project is that of the installation.
create table seller (project_id uuid unique nulls not distinct references project, profile jsonb not null);
-- Paths follow from the content. They are kept: signed agreements show them.
create table logo (path text primary key, content bytea not null);
alter table booking add column seller jsonb;
alter type booking_write add attribute seller text;

end $$
