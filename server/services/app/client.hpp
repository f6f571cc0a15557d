// The app service's typed client: manifests from an app's definition.
#pragma once

#include <kubeopera/http/transport.hpp>
#include <kubeopera/manifest/render.hpp>

#include <memory>

namespace kubeopera::inline v1::app_service {

/// The body of POST /api/v1/manifests.
struct render_request {
  manifest::app_spec app;
  manifest::render_context context;
  static void rules(json::rule_set& r) {
    r("app").required().doc("The app's definition.");
    r("context").required().doc("What the platform knows about it.");
  }
};
KUBEOPERA_DESCRIBE(render_request, (app, context))

struct render_reply {
  std::map<std::string, std::string> files;
  std::string template_hash, content_hash;
  std::int64_t template_revision = 0;
  static void rules(json::rule_set& r) { r("files").doc("File name to YAML; kustomization.yaml names the others."); }
};
KUBEOPERA_DESCRIBE(render_reply, (files, template_hash, content_hash, template_revision))

/// Thread-safe.
class client {
 public:
  virtual ~client() = default;
  /// Errors: invalid_argument (every violation), failed_precondition (NoImage), unavailable.
  virtual task<render_reply> render(const render_request& request) = 0;
};

/// In process: calls the generator directly.
std::shared_ptr<client> make_local_client();
/// Over HTTP, with the internal key.
std::shared_ptr<client> make_http_client(std::shared_ptr<http::transport> transport, std::string bearer_token);

}  // namespace kubeopera::inline v1::app_service
