#include "server/services/app/service.hpp"

namespace kubeopera::inline v1::app_service {

task<render_reply> service::render_manifests(web::call&, web::body<render_request> b) {
  auto local = make_local_client();
  co_return co_await local->render(b.value);
}

task<validate_reply> service::validate_app(web::call&, web::body<manifest::app_spec> b) {
  validate_reply out;
  for (auto& v : manifest::validate(b.value)) out.errors.push_back({std::move(v.pointer), std::move(v.message)});
  out.valid = out.errors.empty();
  co_return out;
}

std::vector<web::route> service::routes(std::shared_ptr<service> self) {
  using web::access;
  web::table<service> t(std::move(self));
  t.post<&service::render_manifests>("/api/v1/manifests", access::needs("apps:read"), "Generate an app's Kubernetes manifests.");
  t.post<&service::validate_app>("/api/v1/manifests/validate", access::needs("apps:read"),
                                 "Check an app's definition without generating anything.");
  return t.take();
}

}  // namespace kubeopera::inline v1::app_service
