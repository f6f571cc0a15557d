// A fleet repository and one way to reach it: as a directory, over smart HTTP, over SSH.
#pragma once

#include "tests/integration/gitops/harness.hpp"

namespace harness {

enum class kind { file, http_local, http_server, ssh };

std::string name_of(const testing::TestParamInfo<kind>& info);

class world {
 public:
  explicit world(kind k);
  /// False where sshd is needed and not installed.
  bool available() const { return kind_ != kind::ssh || ssh_; }
  const std::string& fleet() const { return fleet_; }
  /// A remote of its own for one committer.
  std::unique_ptr<remote> open(std::shared_ptr<object_store> store);
  /// The same through a proxy on a loopback port; only where there is a server.
  std::unique_ptr<remote> open_through(int proxy_port, std::shared_ptr<object_store> store);
  /// The server's port.
  int port() const;
  /// Where plain git pushes to: over HTTP where there is a server.
  std::string git_url() const { return http_ ? http_->url() : fleet_; }

  temp_folder dir;
  io_threads io{2};

 private:
  kind kind_;
  std::string fleet_;
  std::unique_ptr<http_git> http_;
  std::shared_ptr<http::transport> local_;
  std::unique_ptr<ssh_server> ssh_;
};

}  // namespace harness
