// Starts and stops serving the kinds of a CustomResourceDefinition.
#include "src/testing/api_crd.hpp"
#include "src/testing/api_managed.hpp"
#include "src/testing/api_state.hpp"

namespace kubeopera::inline v1::testing::api {
namespace {

void serve_kinds(server& s, const json::object& crd, const std::vector<kind_ptr>& kinds) {
  std::unique_lock guard(s.mutex);
  auto next = std::make_shared<kind_table>(*s.table);
  next->replace_custom(std::string(json::get_string(crd, {"spec", "group"})),
                       std::string(json::get_string(crd, {"spec", "names", "plural"})), kinds);
  s.table = std::move(next);
}

bool established(const json::object& crd) {
  const auto* all = json::get_array(crd, {"status", "conditions"});
  for (std::size_t i = 0; all && i < all->size(); ++i) {
    const auto* c = (*all)[i].if_object();
    if (c && json::get_string(*c, {"type"}) == "Established" && json::get_string(*c, {"status"}) == "True") return true;
  }
  return false;
}

}  // namespace

void crd_written(server& s, const std::string& name) {
  kind_ptr kind = builtin_kind("apiextensions.k8s.io", "customresourcedefinitions");
  record_ptr rec = s.store.get(*kind, name);
  if (!rec) return;
  json::object crd = parse_record(*kind, *rec);
  serve_kinds(s, crd, kinds_of(crd));
  if (established(crd)) return;
  for (bool ready : {false, true}) {
    request r;
    r.subresource = "status";
    auto change = [&](const json::object& live) -> outcome<json::object> {
      json::object next = live;
      accept_names(next, s.now(), ready);
      track_update(*kind, live, next, {"kube-apiserver", "status", s.now()}, false);
      return next;
    };
    auto stored = store_change(s, r, *kind, {}, name, change);
    if (!stored) return;  // deleted meanwhile: nothing is left to establish
  }
}

void crd_removed(server& s, const json::object& crd) {
  std::vector<kind_ptr> kinds = kinds_of(crd);
  if (!kinds.empty()) s.store.drop(*kinds.front());
  serve_kinds(s, crd, {});
}

}  // namespace kubeopera::inline v1::testing::api
