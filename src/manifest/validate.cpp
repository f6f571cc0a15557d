// What must hold between the fields of a spec, and the one pass that reports it together with the rules of each field.
#include "src/manifest/grammar.hpp"

#include <kubeopera/json/write.hpp>
#include <kubeopera/manifest/app_spec.hpp>
#include <kubeopera/manifest/quantity.hpp>

#include <set>

namespace kubeopera::inline v1::manifest {
namespace {

constexpr std::size_t max_spec_bytes = 512 * 1024;
constexpr const char* max_cpu = "64";
constexpr const char* min_memory = "4Mi";
constexpr const char* max_memory = "512Gi";

class checker {
 public:
  checker(const app_spec& spec, std::vector<violation>& out) : spec_(spec), out_(out) {}

  void run() {
    image();
    ports();
    env();
    resources();
    scaling();
    health(spec_.health.readiness, "/health/readiness", true);
    health(spec_.health.liveness, "/health/liveness", false);
    health(spec_.health.startup, "/health/startup", false);
    security();
    texts(spec_.command, "/command");
    texts(spec_.args, "/args");
    labels();
    if (spec_.command.empty() && !spec_.args.empty() && spec_.args[0].empty()) fail("/args/0", "may not be empty");
    if (json::write(json::encode(spec_)).size() > max_spec_bytes) fail("", "the app is over 512 KiB in all");
  }

 private:
  void fail(std::string pointer, std::string message) {
    for (const auto& v : out_)
      if (v.pointer == pointer) return;  // the field's own rule has spoken
    out_.push_back({std::move(pointer), std::move(message)});
  }

  void image() {
    if (spec_.image.empty() && !spec_.source) fail("/image", "is required where there is no source");
  }

  void ports() {
    std::set<std::string> names{"http"};
    std::set<std::pair<int, port_protocol>> numbers{{spec_.port, port_protocol::TCP}, {80, port_protocol::TCP}};
    for (std::size_t i = 0; i < spec_.ports.size(); ++i) {
      const auto& p = spec_.ports[i];
      auto at = "/ports/" + std::to_string(i);
      if (!names.insert(p.name).second) fail(at + "/name", p.name == "http" ? "is the main port's name" : "is there twice");
      if (!numbers.insert({p.port, p.protocol}).second)
        fail(at + "/port", p.port == spec_.port ? "is the main port"
                           : p.port == 80       ? "is the Service's port of the main port"
                                                : "is there twice");
    }
  }

  void env() {
    std::set<std::string> names;
    for (std::size_t i = 0; i < spec_.env.size(); ++i) {
      const auto& e = spec_.env[i];
      auto at = "/env/" + std::to_string(i);
      int kinds = (e.value ? 1 : 0) + (e.secret_ref ? 1 : 0) + (e.secret ? 1 : 0);
      if (kinds != 1) fail(at, "needs exactly one of value, secret_ref and secret");
      if (!e.name.empty() && !names.insert(e.name).second) fail(at + "/name", "is there twice");
    }
  }

  void amount(const std::optional<std::string>& text, const std::string& at, const char* low, const char* high) {
    if (!text) return;
    auto q = quantity::parse(*text);
    if (!q) return;  // its own rule has spoken
    if (low && *q < *quantity::parse(low))
      fail(at, "must be at least " + std::string(low) +
                   (text->ends_with('m') ? " (m means thousandths of a byte; Mi was meant?)" : ""));
    if (*q > *quantity::parse(high)) fail(at, "must be at most " + std::string(high));
  }

  void not_under(const std::optional<std::string>& limit, const std::optional<std::string>& request, const std::string& at) {
    if (!limit || !request) return;
    auto high = quantity::parse(*limit);
    auto low = quantity::parse(*request);
    if (high && low && *high < *low) fail(at, "must not be less than the request of " + *request);
  }

  void resources() {
    const auto& r = spec_.resources;
    amount(r.requests.cpu, "/resources/requests/cpu", "1m", max_cpu);
    amount(r.limits.cpu, "/resources/limits/cpu", "1m", max_cpu);
    amount(r.requests.memory, "/resources/requests/memory", min_memory, max_memory);
    amount(r.limits.memory, "/resources/limits/memory", min_memory, max_memory);
    not_under(r.limits.cpu, r.requests.cpu, "/resources/limits/cpu");
    not_under(r.limits.memory, r.requests.memory, "/resources/limits/memory");
  }

  void scaling() {
    if (spec_.autoscaling && spec_.autoscaling->max_replicas < spec_.autoscaling->min_replicas)
      fail("/autoscaling/max_replicas", "must not be less than min_replicas");
    auto none = [](const std::string& s) { return s == "0" || s == "0%"; };
    if (none(spec_.strategy.max_surge) && none(spec_.strategy.max_unavailable))
      fail("/strategy/max_surge", "may not be zero together with max_unavailable");
  }

  void health(const std::optional<health_check>& check, const std::string& at, bool readiness) {
    if (!check) return;
    int kinds = (check->http ? 1 : 0) + (check->tcp ? 1 : 0) + (check->exec ? 1 : 0);
    if (kinds != 1) fail(at, "needs exactly one of http, tcp and exec");
    if (!readiness && check->success_threshold != 1) fail(at + "/success_threshold", "must be 1 here");
    if (check->exec) {
      if (check->exec->command.empty() || check->exec->command[0].empty()) fail(at + "/exec/command", "needs a program");
      texts(check->exec->command, at + "/exec/command");
    }
  }

  void security() {
    const auto& s = spec_.security;
    if (s.run_as_non_root && s.run_as_user && *s.run_as_user == 0)
      fail("/security/run_as_user", "may not be 0 (root) while run_as_non_root is true");
    std::set<std::string> seen;
    for (std::size_t i = 0; i < s.writable_paths.size(); ++i) {
      auto at = "/security/writable_paths/" + std::to_string(i);
      if (auto bad = grammar::mount_path(s.writable_paths[i]); !bad.empty())
        fail(at, bad);
      else if (!seen.insert(s.writable_paths[i]).second)
        fail(at, "is there twice");
    }
  }

  void texts(const std::vector<std::string>& all, const std::string& at) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].size() > 32 * 1024)
        fail(at + "/" + std::to_string(i), "its length must be at most 32768");
      else if (auto bad = grammar::no_nul(all[i]); !bad.empty())
        fail(at + "/" + std::to_string(i), bad);
    }
  }

  void labels() {
    for (const auto& [key, value] : spec_.labels) {
      auto at = json::pointer_step("/labels", key);
      if (auto bad = grammar::label_key(key); !bad.empty())
        fail(at, bad);
      else if (bad = grammar::label_value(value); !bad.empty())
        fail(at, bad);
    }
  }

  const app_spec& spec_;
  std::vector<violation>& out_;
};

}  // namespace

std::vector<violation> validate(const app_spec& spec) {
  json::read_context at;
  app_spec scratch;
  json::codec<app_spec>::read(json::encode(spec), scratch, at);
  auto& all = at.violations();
  checker(spec, all).run();
  return std::move(all);
}

result<app_spec> read_app_spec(const json::value& v) {
  json::read_context at;
  app_spec spec;
  json::codec<app_spec>::read(v, spec, at);
  auto& all = at.violations();
  checker(spec, all).run();
  if (all.empty()) return spec;
  auto count = all.size();
  return error(errc::invalid_argument, "InvalidBody",
               count == 1 ? "1 field is not valid" : std::to_string(count) + " fields are not valid")
      .with_violations(std::move(all));
}

}  // namespace kubeopera::inline v1::manifest
