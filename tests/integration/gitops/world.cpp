// The worlds of the integration tests.
#include "tests/integration/gitops/world.hpp"

#include <kubeopera/http/client.hpp>

namespace harness {

std::string name_of(const testing::TestParamInfo<kind>& info) {
  switch (info.param) {
    case kind::file:
      return "file";
    case kind::http_local:
      return "http_local";
    case kind::http_server:
      return "http_server";
    case kind::ssh:
      return "ssh";
  }
  return "";
}

world::world(kind k) : kind_(k), fleet_(make_bare(dir, "fleet.git")) {
  git(fleet_, "config receive.denyNonFastForwards true");
  git_server_options o;
  o.repository = fleet_;
  o.allow_push = true;
  if (k == kind::http_server) http_ = std::make_unique<http_git>(io, o);
  if (k == kind::http_local) local_ = http::make_local_transport(make_git_http_handler(o));
  if (k == kind::ssh) ssh_ = ssh_server::start(dir);
}

std::unique_ptr<remote> world::open(std::shared_ptr<object_store> store) {
  switch (kind_) {
    case kind::file:
      return make_file_remote(fleet_, store);
    case kind::http_local:
      return make_http_remote(local_, "", store);
    case kind::http_server:
      return make_http_remote(http_->client(), "/", store);
    case kind::ssh:
      return make_ssh_remote(io.executor(), ssh_->options(fleet_), store);
  }
  return nullptr;
}

std::unique_ptr<remote> world::open_through(int proxy_port, std::shared_ptr<object_store> store) {
  if (kind_ == kind::ssh) return make_ssh_remote(io.executor(), ssh_->options_through(fleet_, proxy_port), store);
  auto url = "http://127.0.0.1:" + std::to_string(proxy_port);
  return make_http_remote(http::make_client(io.executor(), http::client_options(url)).value(), "/", store);
}

int world::port() const { return ssh_ ? ssh_->port() : http_->port(); }

}  // namespace harness
