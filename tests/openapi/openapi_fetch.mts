// Uses the types that openapi-typescript made of the document: put a unit, read it, and be refused twice.
import assert from "node:assert/strict";
import { argv } from "node:process";
import createClient from "openapi-fetch";
import type { paths } from "./holdfast.ts";

const [baseUrl, key, slug] = argv.slice(2) as [string, string, string];
const client = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${key}` } });
const unit = "/v1/integration/projects/{slug}/units/{code}";
const params = { path: { slug, code: "A/101" } };
const body = { type: "apartment", areaSqm: 120.5, priceSar: 950000.25, bedrooms: null };

const put = await client.PUT(unit, { params, body });
assert.equal(put.response.status, 201);

const { data: found } = await client.GET(unit, { params });
assert(found);
const price: number = found.priceSar;
const bedrooms: number | null = found.bedrooms;
assert.deepEqual([found.code, price, bedrooms, found.status], ["A/101", 950000.25, null, "available"]);

// @ts-expect-error: a unit has no such field.
found.colour;

// @ts-expect-error: a price is a number.
const invalid = await client.PUT(unit, { params, body: { ...body, priceSar: "a lot" } });
assert.equal(invalid.response.status, 422);
assert(invalid.error && "errors" in invalid.error && invalid.error.errors);
assert.deepEqual(invalid.error.errors.map((fault) => fault.pointer), ["/priceSar"]);

const hold = await client.POST("/v1/storefront/projects/{slug}/units/{code}/hold", { params });
assert.equal(hold.response.status, 201);
const locked = await client.PATCH(unit, { params, body: { priceSar: 1 } });
assert.equal(locked.response.status, 409);
assert(locked.error && "reason" in locked.error);
assert.deepEqual([locked.error.reason, locked.error.currentStatus], ["terms-locked", "held"]);
