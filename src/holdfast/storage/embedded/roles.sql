-- The roles of the embedded database: a superuser, who owns the schema, and the plain one of the application.
-- `postgres --single -j` reads this too: an empty line after each statement, and none within.

-- What an operator may have set must not put the passwords into the log, or store them in another way.
set log_statement = 'none';

set log_min_duration_statement = -1;

set password_encryption = 'scram-sha-256';

do $$ begin create role holdfast_app; exception when duplicate_object then null; end $$;

alter role holdfast_app login nosuperuser nocreatedb nocreaterole noreplication nobypassrls
    password '{holdfast_app}';

alter role holdfast password '{holdfast}';

