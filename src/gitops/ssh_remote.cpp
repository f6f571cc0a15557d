// Git over SSH: the ssh program carries the same protocol that smart HTTP does, one session a question.
#include "src/gitops/exchange.hpp"
#include "src/gitops/process.hpp"
#include "src/gitops/validate.hpp"
#include "src/gitops/work.hpp"

#include <kubeopera/gitops/committer.hpp>

#include <algorithm>

namespace kubeopera::inline v1::gitops {

namespace {

using namespace detail;

bool printable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x20 && c != 0x7f; });
}

bool fit_for_option(std::string_view path) { return path.find_first_of("\"%$") == std::string_view::npos && printable(path); }

// Nothing here may be read as an option, as a second word, or as shell text at the far end.
result<void> validate_ssh(const ssh_options& o) {
  std::vector<violation> faults;
  auto word = [](std::string_view text) {
    return !text.empty() && text.front() != '-' && text.find_first_of(" @'\"\\$`;&|<>()*?") == std::string_view::npos &&
           printable(text);
  };
  if (!word(o.host)) faults.push_back({"/host", "a host name or address"});
  if (!word(o.user)) faults.push_back({"/user", "a user name"});
  if (o.path.empty() || o.path.front() == '-' || !printable(o.path))
    faults.push_back({"/path", "the repository's path on the server"});
  if (o.port < 1 || o.port > 65535) faults.push_back({"/port", "1 to 65535"});
  if (o.known_hosts_file.empty() || !fit_for_option(o.known_hosts_file))
    faults.push_back({"/known_hosts_file", "a file with the server's pinned keys"});
  if (!fit_for_option(o.identity_file)) faults.push_back({"/identity_file", "a private key's file"});
  if (faults.empty()) return {};
  return error(errc::invalid_argument, "InvalidSsh", "the SSH address cannot be used").with_violations(std::move(faults));
}

// For the shell at the far end: single quotes, and both ' and ! outside of them.
std::string shell_quote(std::string_view text) {
  std::string out = "'";
  for (char c : text) {
    if (c == '\'' || c == '!')
      out += std::string("'\\") + c + "'";
    else
      out.push_back(c);
  }
  return out + "'";
}

spawn_options ssh_command(const ssh_options& o, const std::string& service) {
  spawn_options out;
  out.program = o.program;
  out.arguments = {"-F", "/dev/null", "-T", "-x", "-a"};
  auto option = [&out](const std::string& text) {
    out.arguments.push_back("-o");
    out.arguments.push_back(text);
  };
  option("BatchMode=yes");
  option("StrictHostKeyChecking=yes");
  option("UserKnownHostsFile=\"" + o.known_hosts_file + "\"");
  option("GlobalKnownHostsFile=/dev/null");
  option("UpdateHostKeys=no");
  option("ConnectTimeout=10");
  option("ServerAliveInterval=10");
  option("ServerAliveCountMax=3");
  if (!o.identity_file.empty()) {
    option("IdentitiesOnly=yes");
    option("IdentityFile=\"" + o.identity_file + "\"");
  }
  out.arguments.insert(out.arguments.end(),
                       {"-p", std::to_string(o.port), "-l", o.user, "--", o.host, service + " " + shell_quote(o.path)});
  out.environment = {"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C"};
  return out;
}

// One ssh session with a service at its other end.
class session {
 public:
  static result<std::unique_ptr<session>> open(asio::any_io_executor executor, const ssh_options& options,
                                               const std::string& service) {
    KUBEOPERA_CHECK(validate_ssh(options));
    KUBEOPERA_TRY(auto child, child_process::start(executor, ssh_command(options, service)));
    return std::unique_ptr<session>(new session(std::move(child)));
  }

  task<advertisement> greet() {
    advertisement_reader reader("");
    while (true) {
      KUBEOPERA_CO_TRY(auto p, co_await next());
      KUBEOPERA_CO_TRY(bool complete, reader.take(p));
      if (complete) co_return reader.value();
    }
  }

  task<pkt> next() {
    while (true) {
      KUBEOPERA_CO_TRY(auto p, lines_.next());
      if (p) co_return std::move(*p);
      KUBEOPERA_CO_TRY(auto piece, co_await child_->read());
      if (piece.empty()) co_return co_await ended();
      lines_.feed(piece);
    }
  }

  // Bytes that have come but were not read as lines, or the next ones.
  task<std::string> raw() {
    if (!lines_.empty()) {
      std::string out(lines_.rest());
      lines_ = pkt_reader();
      co_return out;
    }
    co_return co_await child_->read();
  }

  task<void> write(std::string bytes) { return child_->write(std::move(bytes)); }
  void close_input() { child_->close_input(); }

  // Why the far end fell silent: ssh's own exit code is 255.
  task<pkt> ended() {
    KUBEOPERA_CO_TRY(int code, co_await child_->wait());
    auto words = clean_text(child_->error_text());
    auto is = [&words](std::string_view part) { return words.find(part) != std::string::npos; };
    if (code == 255 && is("Host key verification failed"))
      co_return error(errc::unauthenticated, "SshHostKey", "the SSH server's key is not the pinned one: " + words);
    if (code == 255 && is("Permission denied"))
      co_return error(errc::unauthenticated, "SshRefused", "the SSH server does not accept the key: " + words);
    if (code == 255) co_return error(errc::unavailable, "SshFailed", "ssh ended: " + words);
    if (is("does not appear to be a git repository") || is("not found") || is("No such file"))
      co_return error(errc::not_found, "GitRepositoryNotFound", "the Git server answered: " + words);
    co_return error(errc::unavailable, "GitServer", "the Git server ended the session: " + words);
  }

 private:
  explicit session(std::unique_ptr<child_process> child) : child_(std::move(child)) {}
  std::unique_ptr<child_process> child_;
  pkt_reader lines_;
};

class ssh_remote : public remote {
 public:
  ssh_remote(asio::any_io_executor executor, ssh_options options, std::shared_ptr<object_store> store)
      : executor_(std::move(executor)), options_(std::move(options)), store_(std::move(store)) {}

  task<std::optional<std::string>> tip(const std::string& branch) override {
    KUBEOPERA_CO_CHECK(validate_branch(branch));
    KUBEOPERA_CO_TRY(auto s, session::open(executor_, options_, "git-upload-pack"));
    KUBEOPERA_CO_TRY(auto offered, co_await s->greet());
    KUBEOPERA_CO_CHECK(co_await s->write("0000"));
    co_return tip_in(offered, branch);
  }

  task<void> may_push() override {
    KUBEOPERA_CO_TRY(auto s, session::open(executor_, options_, "git-receive-pack"));
    KUBEOPERA_CO_TRY(auto offered, co_await s->greet());
    KUBEOPERA_CO_CHECK(co_await s->write("0000"));
    if (!offered.has("report-status"))
      co_return error(errc::unsupported, "GitServer", "the Git server does not report what became of a push");
    co_return result<void>();
  }

  task<void> fetch(const std::string& want, const std::vector<std::string>& have) override {
    KUBEOPERA_CO_CHECK(parse_oid(want));
    KUBEOPERA_CO_TRY(auto s, session::open(executor_, options_, "git-upload-pack"));
    KUBEOPERA_CO_TRY(auto offered, co_await s->greet());
    bool listed = std::any_of(offered.refs.begin(), offered.refs.end(), [&](auto& r) { return r.second.hex() == want; });
    if (!listed && !offered.has("allow-reachable-sha1-in-want") && !offered.has("allow-any-sha1-in-want"))
      co_return error(errc::conflict, "BranchMoved", "the branch has moved meanwhile");
    KUBEOPERA_CO_CHECK(co_await s->write(fetch_request(offered, want, have)));
    s->close_input();
    KUBEOPERA_CO_TRY(auto writer, store_->begin_pack());
    fetch_answer answer(offered.has("side-band-64k"), std::move(writer));
    while (!answer.complete()) {
      KUBEOPERA_CO_TRY(auto piece, co_await s->raw());
      if (piece.empty()) break;
      KUBEOPERA_CO_CHECK(answer.take(piece));
    }
    std::function<result<void>()> finish = [&answer] { return answer.finish(); };
    co_return co_await disk_work().run<void>(std::move(finish));
  }

  task<void> push(const std::string& branch, const std::string& from, const std::string& to, const std::string& pack) override {
    KUBEOPERA_CO_CHECK(validate_branch(branch));
    auto ref = "refs/heads/" + branch;
    KUBEOPERA_CO_TRY(auto s, session::open(executor_, options_, "git-receive-pack"));
    KUBEOPERA_CO_TRY(auto offered, co_await s->greet());
    if (!offered.has("report-status"))
      co_return error(errc::unsupported, "GitServer", "the Git server does not report what became of a push");
    if (tip_in(offered, branch).value_or("") != from) {
      KUBEOPERA_CO_CHECK(co_await s->write("0000"));
      co_return error(errc::conflict, "BranchMoved", "the branch has moved meanwhile");
    }
    KUBEOPERA_CO_CHECK(co_await s->write(push_request(offered, ref, from, to)));
    KUBEOPERA_CO_CHECK(co_await s->write(pack));
    push_report report(push_uses_side_band(offered));
    while (!report.complete()) {
      KUBEOPERA_CO_TRY(auto p, co_await s->next());
      KUBEOPERA_CO_CHECK(report.take(p));
    }
    s->close_input();
    co_return report.verdict(ref);
  }

 private:
  asio::any_io_executor executor_;
  ssh_options options_;
  std::shared_ptr<object_store> store_;
};

}  // namespace

std::unique_ptr<remote> make_ssh_remote(asio::any_io_executor executor, ssh_options options,
                                        std::shared_ptr<object_store> store) {
  return std::make_unique<ssh_remote>(std::move(executor), std::move(options), std::move(store));
}

}  // namespace kubeopera::inline v1::gitops
