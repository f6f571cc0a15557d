// From route rows to OpenAPI 3.1.
#include "server/web/router.hpp"

namespace kubeopera::inline v1::web {
namespace {

json::object problem_schema() {
  json::object item{
      {"type", "object"},
      {"properties",
       json::object{{"pointer", json::object{{"type", "string"},
                                             {"description", "JSON pointer into the body, or ?name for a query parameter"}}},
                    {"message", json::object{{"type", "string"}}}}}};
  json::object p;
  for (const char* s : {"type", "title", "detail", "code", "reason", "request_id"}) p[s] = json::object{{"type", "string"}};
  p["status"] = json::object{{"type", "integer"}};
  p["errors"] = json::object{{"type", "array"}, {"items", std::move(item)}};
  return {{"type", "object"}, {"description", "RFC 9457 problem details."}, {"properties", std::move(p)}};
}

json::array parameters(const route& r, json::schema_set& set) {
  json::array out;
  for (std::size_t at = r.path.find('{'); at != std::string::npos; at = r.path.find('{', at + 1)) {
    auto name = r.path.substr(at + 1, r.path.find('}', at) - at - 1);
    out.push_back(json::object{{"name", name}, {"in", "path"}, {"required", true}, {"schema", json::object{{"type", "string"}}}});
  }
  if (r.query_schema) {
    auto schema = r.query_schema(set);
    for (auto& m : schema.at("properties").as_object()) {
      json::object p{{"name", m.key()}, {"in", "query"}};
      auto& s = m.value().as_object();
      if (auto* d = s.if_contains("description")) {
        p["description"] = *d;
        s.erase("description");
      }
      p["schema"] = s;
      out.push_back(std::move(p));
    }
  }
  if (r.method == "POST")
    out.push_back(json::object{
        {"name", "Idempotency-Key"}, {"in", "header"}, {"schema", json::object{{"type", "string"}, {"maxLength", 200}}}});
  return out;
}

json::object responses(const route& r, json::schema_set& set) {
  json::object ok{{"description", r.success == 204 ? "Done; no content." : "Success."}};
  if (r.stream) {
    ok["content"] =
        json::object{{"text/event-stream", json::object{}}, {"application/json", json::object{}}, {"text/plain", json::object{}}};
  } else if (r.success != 204) {
    ok["content"] = json::object{{"application/json", json::object{{"schema", r.reply_schema(set)}}}};
  }
  json::object out;
  out[std::to_string(r.success)] = std::move(ok);
  out["default"] = json::object{{"$ref", "#/components/responses/Problem"}};
  return out;
}

}  // namespace

json::object openapi_document(const router_options& options, const std::vector<route>& rows) {
  json::schema_set set;
  json::object paths;
  for (const auto& r : rows) {
    json::object op;
    op["operationId"] = r.operation_id;
    op["summary"] = r.summary;
    auto params = parameters(r, set);
    if (!params.empty()) op["parameters"] = std::move(params);
    if (r.body_schema)
      op["requestBody"] = json::object{
          {"required", true}, {"content", json::object{{"application/json", json::object{{"schema", r.body_schema(set)}}}}}};
    op["responses"] = responses(r, set);
    if (r.access.what() == access::kind::open)
      op["security"] = json::array{};
    else if (r.access.what() == access::kind::permission)
      op["x-required-permission"] = r.access.permission();
    else
      op["x-required-permission"] = "platform_admin";
    std::string method;
    for (char c : r.method) method += static_cast<char>(c - 'A' + 'a');
    json::ensure_object(paths, r.path)[method] = std::move(op);
  }
  json::object components;
  set.named()["Problem"] = problem_schema();
  components["schemas"] = std::move(set.named());
  components["responses"] = json::object{
      {"Problem",
       json::object{
           {"description", "What went wrong, where and why."},
           {"content", json::object{{"application/problem+json",
                                     json::object{{"schema", json::object{{"$ref", "#/components/schemas/Problem"}}}}}}}}}};
  components["securitySchemes"] =
      json::object{{"bearer", json::object{{"type", "http"}, {"scheme", "bearer"}, {"bearerFormat", "JWT"}}}};
  json::object doc;
  doc["openapi"] = "3.1.0";
  doc["info"] = json::object{{"title", options.title},
                             {"version", options.version},
                             {"license", json::object{{"name", "Apache-2.0"}, {"identifier", "Apache-2.0"}}}};
  doc["servers"] = json::array{json::object{{"url", "/"}}};
  doc["security"] = json::array{json::object{{"bearer", json::array{}}}};
  doc["paths"] = std::move(paths);
  doc["components"] = std::move(components);
  return doc;
}

}  // namespace kubeopera::inline v1::web
