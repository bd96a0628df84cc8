// Writes document.check.ts, which compiles only if the types of the client are those of the API document.

import { readFileSync, writeFileSync } from "node:fs";

const read = (name) => JSON.parse(readFileSync(new URL(name, import.meta.url), "utf8"));
const document = read("../openapi.json");
const names = read("../types.json");
const { schemas } = document.components;

const TYPES = {
  string: "string",
  integer: "number",
  number: "number",
  boolean: "boolean",
  null: "null",
};

function typeOf(schema) {
  if (schema.$ref !== undefined) {
    return typeOf(schemas[schema.$ref.split("/").at(-1)]);
  }
  if (schema.enum !== undefined) {
    return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  }
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices !== undefined) {
    return choices.map(typeOf).join(" | ");
  }
  const types = [schema.type].flat().map((type) => {
    if (type === "array") {
      return `(${typeOf(schema.items)})[]`;
    }
    return type === "object" ? objectOf(schema) : TYPES[type];
  });
  return types.join(" | ");
}

function objectOf({ properties, required = [] }) {
  const lines = Object.entries(properties).map(([name, schema]) => {
    return `  ${name}${required.includes(name) ? "" : "?"}: ${typeOf(schema)};\n`;
  });
  return `{\n${lines.join("")}}`;
}

/** The parameters of an operation in the query, as an object. */
function queryOf(name) {
  const operations = Object.values(document.paths).flatMap((path) => Object.values(path));
  const { parameters } = operations.find(({ operationId }) => operationId === name);
  const query = parameters.filter((parameter) => parameter.in === "query");
  const properties = Object.fromEntries(query.map(({ name, schema }) => [name, schema]));
  return { type: "object", properties };
}

const checks = Object.entries(names)
  .filter(([, type]) => type !== null)
  .map(([name, type]) => {
    const expected = typeOf(schemas[name] ?? queryOf(name));
    return `type Document${type} = ${expected};
export const check${type}: Fits<client.${type}, Document${type}> = "fits";
`;
  });
const head = `import type * as client from "switchboard-client";

type Names<T> = T extends unknown ? keyof T : never;
/** Fields that may be null or absent. */
type Open<T> = T extends unknown
  ? { [K in keyof T]-?: null extends T[K] ? K : undefined extends T[K] ? K : never }[keyof T]
  : never;
/** Values of fields that have a list of values in the document, which the client lacks. */
type Values<C, D> = {
  [K in keyof C & keyof D]: NonNullable<D[K]> extends string
    ? string extends NonNullable<D[K]>
      ? never
      : Exclude<NonNullable<D[K]>, C[K]>
    : never;
}[keyof C & keyof D];
type Difference<A, B> = Exclude<A, B> | Exclude<B, A>;
type Faults<C, D> =
  | Difference<Names<C>, Names<D>>
  | Difference<Open<C>, Open<D>>
  | Values<C, D>
  | ([C] extends [D] ? never : { expected: D });
type Fits<C, D> = [Faults<C, D>] extends [never] ? "fits" : Faults<C, D>;

`;
writeFileSync(new URL("document.check.ts", import.meta.url), head + checks.join("\n"));
