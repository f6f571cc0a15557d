// Files, CAs and kubeconfigs.
#include "src/testing/world_certificates.hpp"

#include <kubeopera/crypto/hash.hpp>
#include <kubeopera/yaml/write.hpp>

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>

namespace kubeopera::inline v1::testing {

namespace {

error disk_error(const std::string& what, const std::string& file) {
  return {errc::unavailable, "DiskFailed", what + " " + file + ": " + std::strerror(errno)};
}

}  // namespace

result<void> make_directory(const std::string& path) {
  std::error_code ec;
  bool made = std::filesystem::create_directories(path, ec);
  if (ec) return error(errc::unavailable, "DiskFailed", "cannot make " + path + ": " + ec.message());
  if (made && ::chmod(path.c_str(), 0700) != 0) return disk_error("cannot protect", path);
  return {};
}

result<void> write_file(const std::string& path, std::string_view text) {
  auto fresh = path + ".new";
  int fd = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return disk_error("cannot write", fresh);
  auto n = ::write(fd, text.data(), text.size());
  bool ok = n == static_cast<ssize_t>(text.size()) && ::fsync(fd) == 0;
  ::close(fd);
  if (!ok || ::rename(fresh.c_str(), path.c_str()) != 0) return disk_error("cannot write", path);
  return {};
}

result<std::string> read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return error(errc::not_found, "NotFound", "there is no " + path);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

namespace {

std::optional<crypto::key_pair> stored_pair(const std::string& base) {
  auto certificate = read_file(base + ".pem");
  auto key = read_file(base + ".key");
  if (!certificate || !key || !crypto::check_key_pair(*certificate, *key)) return std::nullopt;
  crypto::key_pair out;
  out.certificate = *certificate;
  out.private_key = *key;
  return out;
}

result<void> store_pair(const std::string& base, const crypto::key_pair& pair) {
  KUBEOPERA_CHECK(write_file(base + ".key", pair.private_key));
  return write_file(base + ".pem", pair.certificate);
}

}  // namespace

result<crypto::key_pair> stored_admin(const std::string& directory, const crypto::key_pair& ca) {
  auto base = directory + "/admin";
  auto kept = stored_pair(base);
  result<crypto::certificate_facts> facts = error();
  if (kept) facts = crypto::read_certificate_pem(kept->certificate);
  if (facts && facts->not_after > std::chrono::system_clock::now() + std::chrono::hours(24 * 30)) return std::move(*kept);
  KUBEOPERA_TRY(auto made, crypto::issue_client(ca, "kubernetes-admin", {"system:masters"}));
  KUBEOPERA_CHECK(store_pair(base, made));
  return made;
}

result<crypto::key_pair> stored_ca(const std::string& directory, const std::string& name, const std::string& common_name) {
  auto base = directory + "/" + name;
  if (auto kept = stored_pair(base)) return std::move(*kept);
  crypto::ca_options options;
  options.common_name = common_name;
  KUBEOPERA_TRY(auto made, crypto::make_ca(options));
  KUBEOPERA_CHECK(store_pair(base, made));
  return made;
}

std::string kubeconfig_text(const std::string& cluster, const std::string& server, const std::string& ca,
                            const crypto::key_pair& client) {
  json::object c, u, x, named_cluster, named_user, named_context, out;
  c["server"] = server;
  c["certificate-authority-data"] = crypto::base64_encode(ca);
  u["client-certificate-data"] = crypto::base64_encode(client.certificate);
  u["client-key-data"] = crypto::base64_encode(client.private_key);
  x["cluster"] = cluster;
  x["user"] = "admin";
  named_cluster["name"] = cluster;
  named_cluster["cluster"] = std::move(c);
  named_user["name"] = "admin";
  named_user["user"] = std::move(u);
  named_context["name"] = cluster;
  named_context["context"] = std::move(x);
  out["apiVersion"] = "v1";
  out["kind"] = "Config";
  json::array clusters, users, contexts;
  clusters.push_back(std::move(named_cluster));
  users.push_back(std::move(named_user));
  contexts.push_back(std::move(named_context));
  out["clusters"] = std::move(clusters);
  out["users"] = std::move(users);
  out["contexts"] = std::move(contexts);
  out["current-context"] = cluster;
  return yaml::write(out);
}

}  // namespace kubeopera::inline v1::testing
