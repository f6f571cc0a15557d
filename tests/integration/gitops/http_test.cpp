// The smart HTTP handler as git clients and our own remote see it.
#include "src/gitops/pkt.hpp"
#include "tests/integration/gitops/harness.hpp"

#include <kubeopera/crypto/hash.hpp>

using namespace harness;

namespace {

result<void> only_alice(const http::request& req, git_access access) {
  auto got = req.headers.get("Authorization");
  if (!got) return error(errc::unauthenticated, "NoToken", "say who you are");
  if (*got == "Basic " + crypto::base64_encode("reader:r") && access == git_access::read) return {};
  if (*got == "Basic " + crypto::base64_encode("alice:pw")) return {};
  return error(errc::permission_denied, "NotYours", "not for you");
}

std::string with_user(std::string url, const std::string& user) { return url.insert(7, user + "@"); }

// A repository with some history that git made.
std::string seed(const temp_folder& dir, int files = 300) {
  auto bare = make_bare(dir, "fleet.git");
  auto work = dir / "seed";
  git(".", "clone -q '" + bare + "' '" + work + "'");
  for (int i = 0; i < files; ++i)
    write_file(work + "/clusters/team/d" + std::to_string(i % 20) + "/f" + std::to_string(i),
               std::string(2000, static_cast<char>('a' + i % 26)) + std::to_string(i));
  git(work, "checkout -q -b main");
  git(work, "add -A");
  git(work, "commit -qm seed");
  for (int i = 0; i < 30; ++i) git(work, "commit -q --allow-empty -m 'step " + std::to_string(i) + "'");
  git(work, "push -q origin main");
  return bare;
}

result<http::response> ask(io_threads& io, http::transport& t, const std::string& method, const std::string& target) {
  return io.run<http::response>(t.send(http::request(method, target)));
}

}  // namespace

TEST(git_http, clones_fetches_and_pushes_with_every_protocol_version) {
  temp_folder dir;
  io_threads io;
  auto bare = seed(dir);
  git_server_options o;
  o.repository = bare;
  o.prefix = "/git/fleet.git";
  o.allow_push = true;
  http_git server(io, o);
  auto url = server.url() + "/git/fleet.git";
  for (std::string version : {"0", "1", "2"}) {
    auto work = dir / ("w" + version);
    git(".", "-c protocol.version=" + version + " clone -q '" + url + "' '" + work + "'");
    write_file(work + "/by-" + version, std::string(200000, 'x') + version);
    git(work, "add -A");
    git(work, "commit -qm 'from " + version + "'");
    git(work, "-c protocol.version=" + version + " push -q origin main");
    EXPECT_EQ(git(work, "rev-parse HEAD"), git(bare, "rev-parse main"));
    // An old clone with many haves catches up: its request is long enough to be compressed.
    git(dir / "seed", "-c protocol.version=" + version + " pull -q '" + url + "' main");
    EXPECT_EQ(git(dir / "seed", "rev-parse HEAD"), git(bare, "rev-parse main"));
  }
  EXPECT_EQ(fsck(bare), "");
  auto forced = shell("git -C '" + (dir / "w0") + "' push -q --force origin HEAD~1:main");
  EXPECT_NE(forced.code, 0) << "a forced push was taken";
}

TEST(git_http, access_is_asked_before_anything) {
  temp_folder dir;
  io_threads io;
  auto bare = seed(dir, 3);
  git_server_options o;
  o.repository = bare;
  o.allow_push = true;
  o.authorize = only_alice;
  http_git server(io, o);
  EXPECT_NE(shell("GIT_TERMINAL_PROMPT=0 git clone -q '" + server.url() + "' '" + (dir / "x") + "'").code, 0);
  git(".", "clone -q '" + with_user(server.url(), "reader:r") + "' '" + (dir / "r") + "'");
  git(dir / "r", "commit -q --allow-empty -m no");
  EXPECT_NE(shell("git -C '" + (dir / "r") + "' push -q origin main").code, 0);
  git(dir / "r", "push -q '" + with_user(server.url(), "alice:pw") + "' main");
  // Our own remote.
  auto store = open_store(dir / "s.git").value();
  auto tip = [&](const std::string& user, const std::string& password) {
    auto r = make_http_remote(server.client(), "", store, user, secret(password));
    return io.run<std::optional<std::string>>(r->tip("main"));
  };
  EXPECT_EQ(tip("", "").error().code(), errc::unauthenticated);
  EXPECT_EQ(tip("bob", "x").error().code(), errc::permission_denied);
  EXPECT_EQ(tip("alice", "pw").value(), git(bare, "rev-parse main"));
  running c(io, store, make_http_remote(server.client(), "", store, "reader", secret("r")));
  auto got = c.submit(make_change("web", "v1"));
  EXPECT_EQ(got.error().code(), errc::permission_denied);
}

TEST(git_http, read_only_and_unknown_addresses) {
  temp_folder dir;
  io_threads io;
  seed(dir, 3);
  // A name that is no label stays out of reach although it is there.
  std::filesystem::copy(dir / "fleet.git", dir / "Fleet_2.git", std::filesystem::copy_options::recursive);
  git_server_options o;
  o.root = dir.str();
  o.prefix = "/git";
  http_git server(io, o);
  auto client = server.client();
  struct row {
    std::string method, target;
    int status;
  };
  const row rows[] = {
      {"GET", "/git/fleet.git/info/refs?service=git-upload-pack", 200},
      {"GET", "/git/fleet.git/info/refs?service=git-receive-pack", 403},
      {"GET", "/git/fleet.git/info/refs", 404},
      {"GET", "/git/fleet.git/info/refs?service=git-shell", 404},
      {"GET", "/git/fleet.git/HEAD", 404},
      {"GET", "/git/Fleet_2.git/info/refs?service=git-upload-pack", 404},
      {"GET", "/git/none.git/info/refs?service=git-upload-pack", 404},
      {"GET", "/git/..%2Ffleet.git/info/refs?service=git-upload-pack", 404},
      {"GET", "/git/../fleet.git/info/refs?service=git-upload-pack", 404},
      {"GET", "/fleet.git/info/refs?service=git-upload-pack", 404},
      {"POST", "/git/fleet.git/info/refs?service=git-upload-pack", 405},
      {"GET", "/git/fleet.git/git-upload-pack", 405},
      {"POST", "/git/fleet.git/git-upload-pack", 415},
      {"POST", "/git/fleet.git/git-receive-pack", 403},
  };
  for (const auto& r : rows) {
    auto got = ask(io, *client, r.method, r.target);
    ASSERT_TRUE(got) << r.target << to_string(got.error());
    EXPECT_EQ(got->status, r.status) << r.method << " " << r.target;
  }
}

TEST(git_http, hostile_bodies_are_refused) {
  temp_folder dir;
  io_threads io;
  git_server_options o;
  o.repository = seed(dir, 3);
  o.max_request_bytes = 100000;
  http_git server(io, o);
  auto client = server.client();
  auto post = [&](std::string body, const std::string& encoding) {
    http::request req("POST", "/git-upload-pack", std::move(body));
    req.headers.set("Content-Type", "application/x-git-upload-pack-request");
    if (!encoding.empty()) req.headers.set("Content-Encoding", encoding);
    auto got = io.run<http::response>(client->send(std::move(req)));
    return got ? got->status : -1;
  };
  EXPECT_EQ(post("not gzip at all", "gzip"), 400);
  EXPECT_EQ(post("0000", "br"), 400);
  EXPECT_EQ(post(std::string(200000, 'x'), ""), 413);
  shell("head -c 50000000 /dev/zero | gzip > '" + (dir / "bomb") + "'");
  EXPECT_EQ(post(read_file(dir / "bomb"), "gzip"), 413);
  EXPECT_EQ(post("zzzz", ""), 500);
}

TEST(git_http, programs_are_limited_and_leave_with_their_clients) {
  temp_folder dir;
  io_threads io;
  git_server_options o;
  o.repository = seed(dir, 3);
  o.max_processes = 1;
  o.max_wait = std::chrono::milliseconds(50);
  // A git that answers and then hangs.
  write_file(dir / "git", "#!/bin/sh\necho $$ >> '" + (dir / "pids") + "'\nprintf 0000\nexec sleep 1000\n");
  std::filesystem::permissions(dir / "git", std::filesystem::perms::owner_all);
  o.git_program = dir / "git";
  auto transport = http::make_local_transport(make_git_http_handler(o));
  const std::string target = "/info/refs?service=git-upload-pack";
  {
    auto held = io.run<http::response>(transport->send(http::request("GET", target), true));
    ASSERT_TRUE(held);
    EXPECT_EQ(held->status, 200);
    auto second = ask(io, *transport, "GET", target);
    ASSERT_TRUE(second);
    EXPECT_EQ(second->status, 503);
    EXPECT_TRUE(second->headers.get("Retry-After"));
  }
  auto pid = std::stoi(read_file(dir / "pids"));
  auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (::kill(pid, 0) == 0 && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  EXPECT_NE(::kill(pid, 0), 0) << "the program outlives its client";
  auto third = io.run<http::response>(transport->send(http::request("GET", target), true));
  ASSERT_TRUE(third);
  EXPECT_EQ(third->status, 200);
}

TEST(git_http, servers_that_do_not_speak_git) {
  temp_folder dir;
  io_threads io;
  auto store = open_store(dir / "s.git").value();
  struct row {
    int status;
    std::string type, body;
    errc code;
  };
  const row rows[] = {
      {200, "text/html", "<html>", errc::unsupported},
      {200, "application/x-git-upload-pack-advertisement", "hello", errc::unavailable},
      {200, "application/x-git-upload-pack-advertisement", "001e# service=git-upload-pack\n0000", errc::unavailable},
      {302, "text/plain", "", errc::unsupported},
      {404, "text/plain", "no such repository", errc::not_found},
      {429, "text/plain", "slow down", errc::unavailable},
      {502, "text/html", "", errc::unavailable},
  };
  for (const auto& r : rows) {
    auto answer = [](row what) -> asio::awaitable<http::response> {
      co_return http::response(what.status, what.type, what.body);
    };
    auto remote = make_http_remote(http::make_local_transport([&](http::request) { return answer(r); }), "/x", store);
    auto got = io.run<std::optional<std::string>>(remote->tip("main"));
    ASSERT_FALSE(got) << r.status;
    EXPECT_EQ(got.error().code(), r.code) << r.status << " " << to_string(got.error());
  }
}

TEST(git_http, nothing_is_pushed_to_a_server_that_will_not_say_what_became_of_it) {
  temp_folder dir;
  io_threads io;
  auto store = open_store(dir / "s.git").value();
  int posts = 0;
  auto offer = [&](http::request req, std::string capabilities) -> asio::awaitable<http::response> {
    if (req.method == "POST") ++posts;
    std::string body;
    gitops::detail::append_pkt(body, "# service=git-receive-pack\n");
    gitops::detail::append_flush(body);
    gitops::detail::append_pkt(body, std::string(40, '0') + " capabilities^{}" + std::string(1, '\0') + capabilities + "\n");
    gitops::detail::append_flush(body);
    co_return http::response(200, "application/x-git-receive-pack-advertisement", body);
  };
  for (std::string capabilities : {"side-band-64k", "report-status side-band-64k"}) {
    auto remote = make_http_remote(http::make_local_transport([&](http::request r) { return offer(std::move(r), capabilities); }),
                                   "/x", store);
    auto got = io.run<void>(remote->push("main", "", std::string(40, 'a'), "PACK"));
    ASSERT_FALSE(got);
    EXPECT_EQ(posts, capabilities.starts_with("report-status") ? 1 : 0) << to_string(got.error());
  }
}
