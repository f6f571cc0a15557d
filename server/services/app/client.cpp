#include "server/services/app/client.hpp"

#include <kubeopera/json/read.hpp>
#include <kubeopera/json/write.hpp>

namespace kubeopera::inline v1::app_service {
namespace {

class local_client final : public client {
 public:
  task<render_reply> render(const render_request& request) override {
    KUBEOPERA_CO_TRY(auto out, manifest::render(request.app, request.context));
    render_reply r;
    r.files = std::move(out.files);
    r.template_hash = std::move(out.template_hash);
    r.content_hash = std::move(out.content_hash);
    r.template_revision = out.template_revision;
    co_return r;
  }
};

// A problem document read back into the error it was made from.
error read_problem(const http::response& r) {
  auto doc = json::read_object(r.body);
  if (!doc) return {errc::unavailable, "AppServiceFailed", "the app service answered with HTTP " + std::to_string(r.status)};
  auto code = r.status == 412 ? errc::failed_precondition : r.status < 500 ? errc::invalid_argument : errc::unavailable;
  error e(code, std::string(json::get_string(*doc, {"reason"})), std::string(json::get_string(*doc, {"detail"})));
  if (auto* all = json::get_array(*doc, {"errors"}))
    for (const auto& v : *all)
      if (auto* o = v.if_object())
        e = std::move(e).with_violation(std::string(json::get_string(*o, {"pointer"})),
                                        std::string(json::get_string(*o, {"message"})));
  return e;
}

class http_client final : public client {
 public:
  http_client(std::shared_ptr<http::transport> transport, std::string token)
      : transport_(std::move(transport)), token_(std::move(token)) {}
  task<render_reply> render(const render_request& request) override {
    http::request req("POST", "/api/v1/manifests", json::write(json::encode(request)));
    req.headers.set("Content-Type", "application/json");
    req.headers.set("Authorization", "Bearer " + token_);
    KUBEOPERA_CO_TRY(auto r, co_await transport_->send(std::move(req)));
    if (r.status != 200) co_return read_problem(r);
    json::limits lim;
    lim.max_bytes = 8 << 20;
    KUBEOPERA_CO_TRY(auto v, json::read(r.body, lim));
    co_return json::decode<render_reply>(v);
  }

 private:
  std::shared_ptr<http::transport> transport_;
  std::string token_;
};

}  // namespace

std::shared_ptr<client> make_local_client() { return std::make_shared<local_client>(); }
std::shared_ptr<client> make_http_client(std::shared_ptr<http::transport> transport, std::string bearer_token) {
  return std::make_shared<http_client>(std::move(transport), std::move(bearer_token));
}

}  // namespace kubeopera::inline v1::app_service
