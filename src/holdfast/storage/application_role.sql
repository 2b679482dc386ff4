-- Give the application's role what it needs to work with the tables of this role, and nothing more.
--
-- The setting holdfast.application_role names the role. Without it, one role does everything. Run after each
-- migration and each restore; nothing is changed if the log belongs to the application's role already.

do $$
declare
    application text = nullif(current_setting('holdfast.application_role', true), '');
    -- The log, its days, and days that are cut off but not dropped yet.
    foreign_log regclass[] = (
        select array_agg(oid) from pg_class
        where relkind in ('r', 'p') and relname ~ '^(ended_delivery|attempt)(_[0-9]{8})?$'
            and relnamespace = current_schema()::regnamespace
            and relowner <> quote_ident(application)::regrole
    );
    part regclass;
begin
    if application is null or application = current_user or foreign_log is null then
        return;
    end if;
    -- storage.schema.ADVISORY_LOCK: two processes that change the same privileges fail.
    perform pg_advisory_xact_lock(x'686F6C64'::bigint);
    -- Not while a table waits for its new owner: everybody else would wait behind that.
    perform set_config('lock_timeout', '1s', true);
    execute format('revoke temporary on database %I from public', current_database());
    execute format('grant usage on schema %I to %I', current_schema(), application);
    execute format(
        'grant select, insert, update, delete on all tables in schema %I to %I', current_schema(), application
    );
    execute format('grant usage, select on all sequences in schema %I to %I', current_schema(), application);
    execute format('revoke insert, update, delete on alembic_version from %I', application);
    -- For the tables and sequences of later migrations.
    execute format(
        'alter default privileges in schema %I grant select, insert, update, delete on tables to %I',
        current_schema(), application
    );
    execute format(
        'alter default privileges in schema %I grant usage, select on sequences to %I',
        current_schema(), application
    );

    -- The application drops days of the log, but may create nothing in the schema, where a function of its own
    -- could be called by the owner's statements. So days are created for it.
    create or replace function create_log_day(log text, day date) returns void
        language plpgsql security definer as $body$
        declare
            part text = log || to_char(day, '_YYYYMMDD');
        begin
            if log not in ('ended_delivery', 'attempt') then
                raise 'there is no log %', log;
            end if;
            execute format('create table %I (like %I including all)', part, log);
            execute format(
                'alter table %I owner to %s',
                part, (select relowner::regrole from pg_class where oid = log::regclass)
            );
        end $body$;
    execute format('alter function create_log_day set search_path = %I, pg_temp', current_schema());
    revoke all on function create_log_day from public;
    execute format('grant execute on function create_log_day to %I', application);

    foreach part in array foreign_log loop
        execute format('alter table %s owner to %I', part, application);
    end loop;
end $$;
