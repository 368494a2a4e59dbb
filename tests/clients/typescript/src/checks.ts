// The paths and checks of the scenario.

// biome-ignore lint: JSON of any shape.
export type Json = any;

/** The value with every ${name} replaced. */
export function filled(value: Json, known: Json): Json {
  if (Array.isArray(value)) {
    return value.map((each) => filled(each, known));
  }
  if (value !== null && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, filled(each, known)]));
  }
  return typeof value === "string" && value.startsWith("${") ? known[value.slice(2, -1)] : value;
}

/** What a path leads to; `*` goes through a list, and what is not there is undefined. */
export function at(value: Json, path: string): Json {
  if (!path) {
    return value;
  }
  const [first, ...rest] = path.split(".");
  if (first === "*") {
    return (value ?? []).map((each: Json) => at(each, rest.join(".")));
  }
  return at(value?.[first], rest.join("."));
}

export function holds(check: Json, found: Json, known: Json): boolean {
  const value = at(found, check.path);
  if ("equals" in check) {
    return same(value, filled(check.equals, known));
  }
  if ("length" in check) {
    return (value ?? []).length === check.length;
  }
  if ("contains" in check) {
    return typeof value === "string" && value.includes(check.contains);
  }
  if ("descends" in check) {
    return value.length > 0 && value.every((each: number, index: number) => index === 0 || value[index - 1] >= each);
  }
  if ("sums" in check) {
    const added = (numbers: number[]) => numbers.reduce((total, each) => total + each, 0);
    const { of, to } = check.sums;
    return value.length > 0 && value.every((each: Json) => added(each[of]) === each[to]);
  }
  throw new Error(`unknown check ${JSON.stringify(check)}`);
}

/** Equal as JSON of messages: what is unset is a default, and a long number may be a text. */
function same(one: Json, other: Json): boolean {
  if (Array.isArray(one) && Array.isArray(other)) {
    return one.length === other.length && one.every((each, index) => same(each, other[index]));
  }
  if (typeof one === "string" && typeof other === "number") {
    return one === String(other);
  }
  return one === other || (isDefault(one) && isDefault(other));
}

function isDefault(value: Json): boolean {
  return Array.isArray(value) ? value.length === 0 : !value;
}
