// Smart HTTP, protocol version 0: what is said is in exchange.hpp, this is the transport of it.
#include "src/gitops/exchange.hpp"
#include "src/gitops/validate.hpp"
#include "src/gitops/work.hpp"

#include <kubeopera/crypto/hash.hpp>
#include <kubeopera/gitops/committer.hpp>
#include <kubeopera/http/retry_after.hpp>

namespace kubeopera::inline v1::gitops {

namespace {

using namespace detail;

constexpr std::size_t max_advertisement = std::size_t(32) << 20;

// What an HTTP status means; the body's words are the server's.
error meaning_of(const http::response& r, std::string_view words) {
  auto told = clean_text(words.substr(0, 300));
  auto text = "the Git server answered " + std::to_string(r.status) + (told.empty() ? "" : ": " + told);
  switch (r.status) {
    case 401:
      return {errc::unauthenticated, "GitUnauthenticated", text};
    case 403:
      return {errc::permission_denied, "GitForbidden", text};
    case 404:
    case 410:
      return {errc::not_found, "GitRepositoryNotFound", text};
    case 408:
    case 429:
      return {errc::unavailable, "GitServer", text};
    default:
      break;
  }
  if (r.status >= 300 && r.status < 400)
    return {errc::unsupported, "GitRedirect", "the Git server redirects; give the address that it redirects to"};
  if (r.status >= 500) return {errc::unavailable, "GitServer", text};
  return {errc::unsupported, "GitServer", text};
}

error status_error(const http::response& r, std::string_view words) {
  auto out = meaning_of(r, words);
  auto wait = http::retry_after(r.headers, clock::real().now());
  return wait ? std::move(out).with_retry_after(*wait) : out;
}

class http_remote : public remote {
 public:
  http_remote(std::shared_ptr<http::transport> transport, std::string base, std::shared_ptr<object_store> store, std::string user,
              secret password)
      : transport_(std::move(transport)), base_(std::move(base)), store_(std::move(store)) {
    while (base_.ends_with('/')) base_.pop_back();
    if (!user.empty() || !password.empty())
      authorization_ = secret("Basic " + crypto::base64_encode(user + ":" + password.reveal()));
  }

  task<std::optional<std::string>> tip(const std::string& branch) override {
    KUBEOPERA_CO_CHECK(validate_branch(branch));
    KUBEOPERA_CO_TRY(upload_, co_await discover("git-upload-pack"));
    co_return tip_in(*upload_, branch);
  }

  task<void> may_push() override {
    KUBEOPERA_CO_CHECK(co_await discover_push());
    co_return result<void>();
  }

  task<void> fetch(const std::string& want, const std::vector<std::string>& have) override {
    KUBEOPERA_CO_CHECK(parse_oid(want));
    if (!upload_) {
      KUBEOPERA_CO_TRY(upload_, co_await discover("git-upload-pack"));
    }
    auto req = make_request("POST", "/git-upload-pack", "git-upload-pack", fetch_request(*upload_, want, have));
    KUBEOPERA_CO_TRY(auto res, co_await transport_->send(std::move(req), true));
    KUBEOPERA_CO_CHECK(co_await check(res, "application/x-git-upload-pack-result"));
    KUBEOPERA_CO_TRY(auto writer, store_->begin_pack());
    fetch_answer answer(upload_->has("side-band-64k"), std::move(writer));
    while (!answer.complete()) {
      KUBEOPERA_CO_TRY(auto piece, co_await next_piece(res));
      if (piece.empty()) break;
      KUBEOPERA_CO_CHECK(answer.take(piece));
    }
    std::function<result<void>()> finish = [&answer] { return answer.finish(); };
    co_return co_await disk_work().run<void>(std::move(finish));
  }

  task<void> push(const std::string& branch, const std::string& from, const std::string& to, const std::string& pack) override {
    KUBEOPERA_CO_CHECK(validate_branch(branch));
    auto ref = "refs/heads/" + branch;
    if (!receive_) {
      KUBEOPERA_CO_TRY(auto offered, co_await discover_push());
      if (tip_in(offered, branch).value_or("") != from)
        co_return error(errc::conflict, "BranchMoved", "the branch has moved meanwhile");
      receive_ = std::move(offered);
    }
    auto req = make_request("POST", "/git-receive-pack", "git-receive-pack", push_request(*receive_, ref, from, to) + pack);
    KUBEOPERA_CO_TRY(auto res, co_await transport_->send(std::move(req), true));
    KUBEOPERA_CO_CHECK(co_await check(res, "application/x-git-receive-pack-result"));
    push_report report(push_uses_side_band(*receive_));
    pkt_reader reader;
    while (!report.complete()) {
      KUBEOPERA_CO_TRY(auto piece, co_await next_piece(res));
      if (piece.empty()) co_return protocol_error("the push report ends too early");
      reader.feed(piece);
      while (!report.complete()) {
        KUBEOPERA_CO_TRY(auto p, reader.next());
        if (!p) break;
        KUBEOPERA_CO_CHECK(report.take(*p));
      }
    }
    co_return report.verdict(ref);
  }

 private:
  http::request make_request(std::string method, const std::string& path, std::string_view service, std::string body) const {
    http::request req(std::move(method), base_ + path, std::move(body));
    if (req.method == "POST") req.headers.set("Content-Type", "application/x-" + std::string(service) + "-request");
    req.headers.set("Accept", req.method == "POST" ? "application/x-" + std::string(service) + "-result" : "*/*");
    req.headers.set("User-Agent", "git/kubeopera-0.1");
    if (!authorization_.empty()) req.headers.set("Authorization", authorization_.reveal());
    return req;
  }

  task<advertisement> discover(std::string_view service) {
    auto req = make_request("GET", "/info/refs?service=" + std::string(service), service, "");
    KUBEOPERA_CO_TRY(auto res, co_await transport_->send(std::move(req), true));
    KUBEOPERA_CO_CHECK(co_await check(res, "application/x-" + std::string(service) + "-advertisement"));
    advertisement_reader reader{std::string(service)};
    pkt_reader lines;
    std::size_t total = 0;
    while (true) {
      KUBEOPERA_CO_TRY(auto piece, co_await next_piece(res));
      if (piece.empty()) co_return protocol_error("the list of refs ends too early");
      if ((total += piece.size()) > max_advertisement)
        co_return error(errc::too_large, "GitServer", "the list of refs is too long");
      lines.feed(piece);
      while (true) {
        KUBEOPERA_CO_TRY(auto p, lines.next());
        if (!p) break;
        KUBEOPERA_CO_TRY(bool complete, reader.take(*p));
        if (complete) co_return reader.value();
      }
    }
  }

  task<advertisement> discover_push() {
    KUBEOPERA_CO_TRY(auto offered, co_await discover("git-receive-pack"));
    if (!offered.has("report-status"))
      co_return error(errc::unsupported, "GitServer", "the Git server does not report what became of a push");
    co_return offered;
  }

  // The next bytes of a body, whether it came whole or as a stream.
  task<std::string> next_piece(http::response& res) {
    if (res.stream) co_return co_await res.stream->next();
    co_return std::exchange(res.body, {});
  }

  task<void> check(http::response& res, std::string type) {
    if (res.status == 200) {
      auto got = res.headers.get("Content-Type");
      if (got && got->substr(0, got->find(';')) == type) co_return result<void>();
      co_return error(errc::unsupported, "NotSmartHttp", "the address does not speak Git's smart HTTP protocol");
    }
    if (res.status == 401 || res.status == 403) receive_.reset();
    std::string words;
    if (res.headers.get("Content-Type").value_or("").starts_with("text/plain")) {
      auto piece = co_await next_piece(res);
      if (piece) words = *piece;
    }
    co_return status_error(res, words);
  }

  std::shared_ptr<http::transport> transport_;
  std::string base_;
  std::shared_ptr<object_store> store_;
  secret authorization_;
  std::optional<advertisement> upload_, receive_;
};

}  // namespace

std::unique_ptr<remote> make_http_remote(std::shared_ptr<http::transport> transport, std::string base_path,
                                         std::shared_ptr<object_store> store, std::string username, secret password) {
  return std::make_unique<http_remote>(std::move(transport), std::move(base_path), std::move(store), std::move(username),
                                       std::move(password));
}

}  // namespace kubeopera::inline v1::gitops
