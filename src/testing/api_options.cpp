// The rules of the query options that go with every request.
#include "src/testing/api_state.hpp"
#include "src/testing/api_status.hpp"

namespace kubeopera::inline v1::testing::api {
namespace {

refusal about(const char* options, problem p) { return invalid("meta.k8s.io", options, "", {std::move(p)}); }

std::optional<refusal> check_write(const request& r) {
  const char* options = r.verb == "create" ? "CreateOptions" : r.verb == "update" ? "UpdateOptions" : "PatchOptions";
  auto validation = r.query("fieldValidation");
  if (!validation.empty() && validation != "Ignore" && validation != "Warn" && validation != "Strict")
    return about(options, unsupported_value("fieldValidation", go_quote(validation), {"", "Ignore", "Strict", "Warn"}));
  bool apply = r.raw.headers.get("Content-Type").value_or("").starts_with("application/apply-patch+");
  if (r.verb == "patch" && !apply && !r.query("force").empty())
    return about(options, forbidden_value("force", "may not be specified for non-apply patch"));
  return std::nullopt;
}

std::optional<refusal> check_list(const request& r) {
  auto match = r.query("resourceVersionMatch"), version = r.query("resourceVersion"), initial = r.query("sendInitialEvents");
  auto no = [](const char* field, const char* why) { return about("ListOptions", forbidden_value(field, why)); };
  bool watching = r.verb == "watch";
  if (!initial.empty() && !watching) return no("sendInitialEvents", "sendInitialEvents is forbidden for list");
  if (!initial.empty() && match != "NotOlderThan")
    return no("resourceVersionMatch", "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
  if (match.empty()) return std::nullopt;
  if (watching && initial.empty())
    return no("resourceVersionMatch", "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided");
  if (watching) return std::nullopt;
  if (version.empty()) return no("resourceVersionMatch", "resourceVersionMatch is forbidden unless resourceVersion is provided");
  if (!r.query("continue").empty())
    return no("resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided");
  if (match != "Exact" && match != "NotOlderThan")
    return about("ListOptions", unsupported_value("resourceVersionMatch", go_quote(match), {"Exact", "NotOlderThan"}));
  if (match == "Exact" && version == "0")
    return no("resourceVersionMatch", "resourceVersionMatch \"Exact\" is forbidden for resourceVersion \"0\"");
  return std::nullopt;
}

}  // namespace

std::optional<refusal> check_options(const request& r) {
  if (r.verb == "create" || r.verb == "update" || r.verb == "patch") return check_write(r);
  if (r.verb == "list" || r.verb == "watch") return check_list(r);
  return std::nullopt;
}

}  // namespace kubeopera::inline v1::testing::api
