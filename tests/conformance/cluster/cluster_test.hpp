// What the tests of this suite share: namespaces of their own, plain exchanges, and waiting for a state with a deadline.
#pragma once

#include "backend.hpp"

#include <kubeopera/json/read.hpp>
#include <kubeopera/json/write.hpp>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kubeopera::conformance {

/// An answer as it came, whatever its code.
struct answer {
  int status = 0;
  http::fields headers;
  std::string text;
  json::object body;  ///< empty where text is no object
  std::string at(std::initializer_list<std::string_view> path) const { return std::string(json::get_string(body, path)); }
  std::string reason() const { return at({"reason"}); }
  std::string message() const { return at({"message"}); }
  std::string warning() const { return std::string(headers.get("Warning").value_or("")); }
  /// "field: message" of each cause, in their order.
  std::vector<std::string> causes() const;
};

/// JSON with $NS for the test's namespace.
class cluster_test : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  backend& at() { return the_backend(); }
  template <class T>
  result<T> wait(task<T> op) {
    return the_runtime().wait(std::move(op));
  }

  /// A new namespace, with its service account, that goes away after the test.
  std::string new_namespace(const json::object& labels = json::object());
  /// A word that no other test has.
  static std::string unique(const std::string& prefix);
  std::string filled(std::string_view text) const;
  json::object doc(std::string_view text) const;

  answer call(const std::string& method, const std::string& path, const std::string& body = {}, const std::string& type = {},
              const std::string& accept = {}, std::shared_ptr<kube::client> as = nullptr);
  answer get(const std::string& path) { return call("GET", path); }
  answer post(const std::string& path, const std::string& body) { return call("POST", path, body, "application/json"); }
  answer put(const std::string& path, const std::string& body) { return call("PUT", path, body, "application/json"); }
  answer merge(const std::string& path, const std::string& body) {
    return call("PATCH", path, body, "application/merge-patch+json");
  }
  answer strategic(const std::string& path, const std::string& body) {
    return call("PATCH", path, body, "application/strategic-merge-patch+json");
  }
  answer apply(const std::string& path, const std::string& manager, const std::string& body, bool force = false) {
    return call("PATCH", path + "?fieldManager=" + manager + (force ? "&force=true" : ""), body, "application/apply-patch+yaml");
  }
  answer remove(const std::string& path, const std::string& body = {}) { return call("DELETE", path, body, "application/json"); }

  /// Makes it and fails the test where it is refused.
  json::object create(const kube::resource_type& type, std::string_view text);
  json::object create(const kube::resource_type& type, const json::object& o);
  std::optional<json::object> find(const kube::resource_type& type, const std::string& name);
  json::object config_map(const std::string& name, const std::string& value = "1");
  std::vector<std::string> names(const kube::resource_type& type, const std::string& selector = {});

  /// Asks again until it holds; false after the limit.
  bool eventually(const std::function<bool()>& holds, std::chrono::seconds limit = std::chrono::seconds(30));
  /// The object once holds(object).
  std::optional<json::object> wait_for(const kube::resource_type& type, const std::string& name,
                                       const std::function<bool(const json::object&)>& holds);

  /// The administrator's client with other settings, or somebody with a token.
  std::shared_ptr<kube::client> client_of(const kube::client_options& options = kube::client_options(),
                                          const std::string& connect_to = {});
  std::shared_ptr<kube::client> client_with_token(const std::string& token);

  std::shared_ptr<kube::client> api;
  std::string ns;
  std::string core, apps, maps;  ///< paths of the namespace: core API, apps/v1, ConfigMaps

 private:
  std::vector<std::string> namespaces_;
};

/// A Deployment of one container in $NS.
std::string deployment(const std::string& name, const std::string& image, int replicas, const std::string& more_spec = {});

}  // namespace kubeopera::conformance
