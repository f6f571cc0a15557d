// Normalising Flux objects.
#include "tests/conformance/flux/normal.hpp"

#include <kubeopera/json/write.hpp>
#include <kubeopera/kube/object.hpp>

#include <algorithm>
#include <regex>

namespace kubeopera::conformance::flux {

std::string numbering::of(const std::string& kind, const std::string& text) {
  auto& all = seen_[kind];
  auto it = all.try_emplace(text, all.size()).first;
  return "<" + kind + " " + std::to_string(it->second) + ">";
}

std::string normal_text(std::string text, numbering& numbers) {
  static const std::regex commit("[0-9a-f]{40}");
  static const std::regex timeout("with a timeout of [0-9a-zµ.]+");
  static const std::regex passed("(passed in|failed after|finished in) [0-9a-zµ.]+");
  static const std::regex next_run("next run in [0-9a-zµ.]+");
  static const std::regex folder("/tmp/kustomization-[0-9]+");
  text = std::regex_replace(text, timeout, "with a timeout");
  text = std::regex_replace(text, passed, "$1 <duration>");
  text = std::regex_replace(text, next_run, "next run");
  text = std::regex_replace(text, folder, "/tmp/kustomization-<n>");
  std::string out;
  auto begin = std::sregex_iterator(text.begin(), text.end(), commit);
  std::size_t at = 0;
  for (auto it = begin; it != std::sregex_iterator(); ++it) {
    out += text.substr(at, static_cast<std::size_t>(it->position()) - at) + numbers.of("commit", it->str());
    at = static_cast<std::size_t>(it->position() + it->length());
  }
  return out + text.substr(at);
}

namespace {

json::array normal_conditions(const json::array& all, numbering& numbers) {
  std::vector<json::object> sorted;
  for (const auto& c : all) {
    auto o = c.as_object();
    o.erase("lastTransitionTime");
    o["message"] = normal_text(std::string(json::get_string(o, {"message"})), numbers);
    sorted.push_back(std::move(o));
  }
  std::sort(sorted.begin(), sorted.end(),
            [](const auto& a, const auto& b) { return json::get_string(a, {"type"}) < json::get_string(b, {"type"}); });
  json::array out;
  for (auto& o : sorted) out.push_back(std::move(o));
  return out;
}

json::array normal_history(const json::array& all, numbering& numbers) {
  // The oldest entry was seen first: number from the back.
  for (auto it = all.rbegin(); it != all.rend(); ++it) {
    numbers.of("digest", std::string(json::get_string(it->as_object(), {"digest"})));
  }
  json::array out;
  for (const auto& e : all) {
    auto o = e.as_object();
    for (const char* key : {"firstReconciled", "lastReconciled", "lastReconciledDuration"}) o.erase(key);
    o["digest"] = numbers.of("digest", std::string(json::get_string(o, {"digest"})));
    o["metadata"] = normal_text(json::write(o["metadata"]), numbers);
    out.push_back(std::move(o));
  }
  return out;
}

json::object normal_status(const json::object& status, numbering& numbers) {
  json::object out;
  if (const auto* a = json::get_object(status, {"artifact"})) {
    out["artifact"] =
        normal_text(std::string(json::get_string(*a, {"path"})) + " " + std::string(json::get_string(*a, {"revision"})), numbers);
  }
  if (const auto* c = json::get_array(status, {"conditions"})) out["conditions"] = normal_conditions(*c, numbers);
  if (const auto* h = json::get_array(status, {"history"})) out["history"] = normal_history(*h, numbers);
  for (const auto& member : status) {
    std::string key = member.key();
    if (key == "artifact" || key == "conditions" || key == "history") continue;
    if (key == "lastHandledReconcileAt")
      out[key] = numbers.of("request", std::string(json::as_view(member.value())));
    else if (member.value().is_string())
      out[key] = normal_text(std::string(json::as_view(member.value())), numbers);
    else
      out[key] = member.value();
  }
  return out;
}

}  // namespace

std::string normal_object(const json::object& o, numbering& numbers) {
  json::object out, metadata;
  metadata["name"] = kube::name_of(o);
  metadata["generation"] = kube::generation_of(o);
  if (const auto* f = json::find(o, {"metadata", "finalizers"})) metadata["finalizers"] = *f;
  if (kube::being_deleted(o)) metadata["deleted"] = true;
  if (auto asked = kube::annotation_of(o, "reconcile.fluxcd.io/requestedAt"); !asked.empty()) {
    metadata["requestedAt"] = numbers.of("request", std::string(asked));
  }
  out["metadata"] = std::move(metadata);
  if (const auto* spec = json::get_object(o, {"spec"})) {
    auto copy = *spec;
    copy.erase("timeout");
    copy.erase("retryInterval");
    out["spec"] = std::move(copy);
  }
  if (const auto* status = json::get_object(o, {"status"})) out["status"] = normal_status(*status, numbers);
  return json::write_canonical(json::value(std::move(out)));
}

std::vector<std::string> distinct(const std::vector<json::object>& objects) {
  numbering numbers;
  std::vector<std::string> out;
  for (const auto& o : objects) {
    auto text = normal_object(o, numbers);
    if (out.empty() || out.back() != text) out.push_back(std::move(text));
  }
  return out;
}

}  // namespace kubeopera::conformance::flux
