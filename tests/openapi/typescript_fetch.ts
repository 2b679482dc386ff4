// Uses the client that openapi-generator made of the document: put a unit, read it, and be refused.
import assert from "node:assert/strict";
import { argv } from "node:process";
import { Configuration, ResponseError, UnitsApi } from "./holdfast/index.ts";

const [basePath, accessToken, slug] = argv.slice(2) as [string, string, string];
const units = new UnitsApi(new Configuration({ basePath, accessToken }));
const unit = { slug, code: "A/102" };
const unitReplacement = { type: "apartment", areaSqm: 120.5, priceSar: 950000.25 };

async function main(): Promise<void> {
  await units.putUnit({ ...unit, unitReplacement });
  const found = await units.getUnit(unit);
  const price: number = found.priceSar;
  const bedrooms: number | null = found.bedrooms;
  const created: Date = found.createdAt;
  assert.deepEqual([found.code, price, bedrooms, found.status], ["A/102", 950000.25, null, "available"]);
  assert(created <= new Date(Date.now() + 60_000));

  const refused = units.putUnit({ ...unit, unitReplacement: { ...unitReplacement, priceSar: -1 } });
  await assert.rejects(refused, (error) => error instanceof ResponseError && error.response.status === 422);
}

void main();
