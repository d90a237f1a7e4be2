// Shows the OpenAPI document of the server that serves this page.

const METHODS = ["get", "post", "put", "delete"];

/** Makes an element. Text is always set as text, never as markup. */
function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children.filter((child) => child !== undefined && child !== null));
  return element;
}

/** Text in which `code` stands between backticks. */
function prose(text = "") {
  const parts = text.split("`");
  return parts.map((part, i) => (i % 2 ? make("code", {}, part) : part));
}

const paragraphs = (text = "") => text.split("\n\n").map((part) => make("p", {}, ...prose(part)));

const schemaName = (reference) => reference.split("/").pop();

/** A schema in a few words, with links to those that have a name. */
function kind(schema = {}) {
  if (schema.$ref) {
    const name = schemaName(schema.$ref);
    return [make("a", { href: `#schema-${name}` }, name)];
  }
  const choices = schema.oneOf ?? schema.anyOf;
  if (choices) return choices.flatMap((choice, i) => (i ? [" or ", ...kind(choice)] : kind(choice)));
  if (schema.enum) return [schema.enum.join(" | ")];
  if (schema.type === "array") return ["list of ", ...kind(schema.items)];
  const type = [schema.type ?? "anything"].flat().join(" or ");
  return [schema.format ? `${type} (${schema.format})` : type];
}

/** What else a value must keep to. */
function bounds(schema) {
  const words = {
    minimum: "at least", maximum: "at most", minLength: "characters, at least", maxLength: "characters, at most",
    minItems: "items, at least", maxItems: "items, at most", pattern: "pattern",
  };
  const known = Object.entries(words).filter(([key]) => schema[key] !== undefined);
  return known.map(([key, word]) => `${word} ${schema[key]}`).join("; ");
}

function table(head, rows) {
  if (rows.length === 0) return undefined;
  const heading = make("tr", {}, ...head.map((text) => make("th", { scope: "col" }, text)));
  const body = rows.map((cells) => make("tr", {}, ...cells.map((cell) => make("td", {}, ...cell))));
  return make("table", {}, make("thead", {}, heading), make("tbody", {}, ...body));
}

/** What a field means; that of an optional one stands with its type. */
function meaning(schema) {
  return schema.description ?? schema.oneOf?.find((part) => part.description)?.description;
}

function fieldRow(name, schema, required, description = meaning(schema)) {
  const limits = bounds(schema);
  const about = [...prose(description), limits && make("div", { class: "quiet" }, limits)].filter(Boolean);
  return [[make("code", {}, name), required ? " (required)" : ""], kind(schema), about];
}

/** The fields of an object, those of the schemas that it takes in included. */
function fieldRows(schema) {
  const own = Object.entries(schema.properties ?? {});
  const rows = own.map(([name, field]) => fieldRow(name, field, schema.required?.includes(name)));
  const parts = (schema.allOf ?? []).flatMap((part) =>
    part.$ref ? [[["all of"], kind(part), []]] : fieldRows(part));
  return [...parts, ...rows];
}

/** A value that fits a schema, to begin from. */
function sample(schema, api) {
  if (schema.$ref) return sample(api.components.schemas[schemaName(schema.$ref)], api);
  if (schema.example !== undefined) return schema.example;
  if (schema.enum) return schema.enum[0];
  if (schema.type === "array") return [sample(schema.items, api)];
  if (schema.properties) {
    const required = Object.entries(schema.properties).filter(([name]) => schema.required?.includes(name));
    return Object.fromEntries(required.map(([name, field]) => [name, sample(field, api)]));
  }
  return schema.type === "integer" ? schema.minimum ?? 0 : "example";
}

/** Sends what the form says, and gives the answer as text. */
async function send(method, path, parameters, inputs, body) {
  const query = new URLSearchParams();
  for (const [i, parameter] of parameters.entries()) {
    const value = inputs[i].value;
    if (parameter.in === "path") path = path.replace(`{${parameter.name}}`, encodeURIComponent(value));
    else if (value !== "") query.append(parameter.name, value);
  }
  const headers = {};
  const token = document.getElementById("token").value;
  if (token) headers.Authorization = `Bearer ${token}`;
  if (body) headers["Content-Type"] = "application/json";
  const url = query.size ? `${path}?${query}` : path;
  const answer = await fetch(url, { method: method.toUpperCase(), headers, body: body?.value });
  const text = await answer.text();
  const head = [...answer.headers].map(([name, value]) => `${name}: ${value}`).join("\n");
  const isJson = answer.headers.get("content-type")?.startsWith("application/json");
  const shown = isJson && text ? JSON.stringify(JSON.parse(text), null, 2) : text;
  return `${answer.status} ${answer.statusText}\n${head}\n\n${shown}`;
}

function tryIt(method, path, operation, id, api) {
  const parameters = operation.parameters ?? [];
  const form = make("form", { "aria-label": `Try ${method} ${path}` });
  const inputs = parameters.map((parameter, i) => {
    const input = make("input", { id: `${id}-${i}`, ...(parameter.required && { required: "" }) });
    form.append(make("label", { for: input.id }, parameter.name), input);
    return input;
  });
  const schema = operation.requestBody?.content["application/json"].schema;
  let body;
  if (schema) {
    body = make("textarea", { id: `${id}-body`, rows: "8", spellcheck: "false" });
    body.value = JSON.stringify(sample(schema, api), null, 2);
    form.append(make("label", { for: body.id }, "Body"), body);
  }
  const output = make("pre", { role: "status", hidden: "" });
  form.append(make("button", {}, "Send"), output);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    output.hidden = false;
    output.textContent = "…";
    output.textContent = await send(method, path, parameters, inputs, body).catch(String);
  });
  return form;
}

function answers(operation) {
  const rows = Object.entries(operation.responses).map(([status, answer]) => {
    const content = Object.values(answer.content ?? {})[0];
    const headers = Object.keys(answer.headers ?? {}).join(", ");
    return [[status], prose(answer.description), content ? kind(content.schema) : ["nothing"], [headers]];
  });
  return table(["Status", "Meaning", "Body", "Headers"], rows);
}

function showOperation(method, path, operation, api) {
  const id = `operation-${operation.operationId}`;
  const parameters = (operation.parameters ?? []).map((parameter) =>
    fieldRow(parameter.name, parameter.schema, parameter.required, parameter.description));
  const schema = operation.requestBody?.content["application/json"].schema;
  const summary = make("summary", {}, make("span", { class: "method" }, method.toUpperCase()),
    make("code", {}, path), " ", make("span", { class: "quiet" }, operation.summary ?? ""));
  const inside = make("div", {}, ...paragraphs(operation.description),
    operation.security && make("p", { class: "quiet" }, "Needs a token."),
    parameters.length ? make("h3", {}, "Parameters") : undefined,
    table(["Name", "Type", "Meaning"], parameters),
    schema && make("h3", {}, "Body"), schema && make("p", {}, ...kind(schema)),
    make("h3", {}, "Answers"), answers(operation),
    make("h3", {}, "Try it"), tryIt(method, path, operation, id, api));
  return make("details", { id }, summary, inside);
}

function showTag(tag, api) {
  const all = Object.entries(api.paths).flatMap(([path, item]) =>
    METHODS.filter((method) => item[method]?.tags?.includes(tag.name)).map((method) => [method, path, item[method]]));
  const operations = all.map(([method, path, operation]) => showOperation(method, path, operation, api));
  const heading = make("h2", { id: `tag-${tag.name}` }, tag.name);
  return make("section", {}, heading, ...paragraphs(tag.description), ...operations);
}

function showSchema([name, schema]) {
  const fields = table(["Name", "Type", "Meaning"], fieldRows(schema));
  const inside = make("div", {}, ...paragraphs(schema.description), fields ?? make("p", {}, ...kind(schema)));
  return make("details", { id: `schema-${name}` }, make("summary", {}, make("code", {}, name)), inside);
}

/** Opens what the address points at, since a closed part cannot be scrolled to. */
function openTarget() {
  const target = document.getElementById(location.hash.slice(1));
  if (target?.tagName !== "DETAILS") return;
  target.open = true;
  target.scrollIntoView();
}

function show(api) {
  document.getElementById("title").textContent = `${api.info.title} ${api.info.version}`;
  document.getElementById("about").replaceChildren(...paragraphs(api.info.description));
  const schemas = make("section", {}, make("h2", { id: "schemas" }, "schemas"),
    ...Object.entries(api.components.schemas).map(showSchema));
  const main = document.getElementById("operations");
  main.replaceChildren(...api.tags.map((tag) => showTag(tag, api)), schemas);
  const links = [...main.querySelectorAll("h2")].map((heading) =>
    make("li", {}, make("a", { href: `#${heading.id}` }, heading.textContent)));
  document.getElementById("contents").replaceChildren(make("ul", {}, ...links));
  openTarget();
}

addEventListener("hashchange", openTarget);
try {
  const answer = await fetch("/api-docs/openapi.json");
  show(await answer.json());
} catch (error) {
  document.getElementById("operations").textContent = `The document cannot be read: ${error}`;
}
