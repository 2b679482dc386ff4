-- The limit: the upsert alone. Every value is a parameter, as it is for any program that stores a unit.
\set number random(1, :units)
\set price random(400000, 1299999)
\set turn random(1, 5)
insert into unit (id, project_id, code, type, area_sqm, price_sar, vat_included, vat_rate, deposit_percent,
    bedrooms, bathrooms, delivery_year, description, images, files, status, version, created_at, updated_at)
values (gen_random_uuid(), :project, 'A-' || :number, :type, :area_sqm, :price + 0.50, :vat_included,
    :vat_rate, :deposit_percent, :bedrooms, :bathrooms, :delivery_year, :description, :images, '[]',
    'available', 1, clock_timestamp(), clock_timestamp())
on conflict (project_id, code) do update set
    type = excluded.type, area_sqm = excluded.area_sqm, price_sar = excluded.price_sar,
    vat_included = excluded.vat_included, vat_rate = excluded.vat_rate,
    deposit_percent = excluded.deposit_percent, bedrooms = excluded.bedrooms,
    bathrooms = excluded.bathrooms, delivery_year = excluded.delivery_year,
    description = excluded.description, images = excluded.images, files = excluded.files,
    status = case when :turn = 1
        then case unit.status when 'available' then 'unavailable' else 'available' end
        else unit.status end,
    version = unit.version + 1, updated_at = clock_timestamp();
