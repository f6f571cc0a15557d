// Faults around make_git_http_handler().
#include "tests/integration/git_races/faulty_server.hpp"

#include <kubeopera/http/client.hpp>

#include <array>
#include <deque>

namespace races {

std::optional<phase> phase_of(const http::request& req) {
  bool write = req.target.find("git-receive-pack") != std::string::npos;
  if (req.target.find("/info/refs") != std::string::npos) return write ? phase::write_refs : phase::read_refs;
  if (req.method != "POST") return std::nullopt;
  return write ? phase::push : phase::fetch;
}

struct faulty_server::state {
  state(http::handler h, chooser c) : inner(std::move(h)), choose(std::move(c)) {}
  http::handler inner;
  chooser choose;
  std::atomic<int> faults{0};
  std::array<std::atomic<int>, 4> calls{};
  std::mutex mutex;
  std::deque<http::request> put_off;
  notifier never;
};

namespace {

constexpr std::size_t body_limit = std::size_t(64) << 20;

// The first bytes of a body, then a failure, which makes the server cut the connection.
class half_a_body : public http::body_source {
 public:
  explicit half_a_body(std::string head) : head_(std::move(head)) {}
  task<std::string> next() override {
    if (!head_.empty()) co_return std::exchange(head_, {});
    co_return error(errc::unavailable, "Cut", "the connection is cut on purpose");
  }

 private:
  std::string head_;
};

http::response plain(int status, const std::string& text) { return {status, "text/plain", text + "\n"}; }

std::optional<http::response> refusal(fault f) {
  switch (f) {
    case fault::unauthorized:
      return plain(401, "who are you");
    case fault::forbidden:
      return plain(403, "not you");
    case fault::missing:
      return plain(404, "no such repository");
    case fault::broken:
      return plain(500, "it broke");
    case fault::busy: {
      auto out = plain(503, "come back later");
      out.headers.set("Retry-After", "1");
      return out;
    }
    default:
      return std::nullopt;
  }
}

std::string type_of(phase p) {
  bool write = p == phase::push || p == phase::write_refs;
  bool refs = p == phase::read_refs || p == phase::write_refs;
  return std::string("application/x-git-") + (write ? "receive" : "upload") + "-pack-" + (refs ? "advertisement" : "result");
}

// The handler's whole answer.
asio::awaitable<std::string> drain(http::response& answer) {
  if (!answer.stream) co_return answer.body;
  auto bytes = co_await http::read_all(*answer.stream, body_limit);
  co_return bytes ? *bytes : std::string();
}

template <class State>
asio::awaitable<http::response> stay_silent(std::shared_ptr<State> s) {
  (void)co_await s->never.wait(s->never.ticket());  // ends when the client has gone
  co_return plain(500, "nobody listens");
}

template <class State>
asio::awaitable<http::response> misbehave(std::shared_ptr<State> s, http::request req, phase p, fault f) {
  if (auto said = refusal(f)) co_return std::move(*said);
  if (f == fault::garbage) co_return http::response(200, type_of(p), "zz\x01\x02 this is no pkt-line, and 0004ffff neither");
  if (f == fault::wrong_service) co_return http::response(200, "text/html", "<html>please log in</html>");
  if (f == fault::silent) co_return co_await stay_silent(s);
  if (req.stream) {
    auto body = co_await http::read_all(*req.stream, body_limit);
    if (!body) co_return plain(400, "the body did not come");
    req.body = std::move(*body);
    req.stream.reset();
  }
  if (f == fault::done_later) {
    {
      std::lock_guard lock(s->mutex);
      s->put_off.push_back(std::move(req));
    }
    co_return co_await stay_silent(s);
  }
  auto answer = co_await s->inner(std::move(req));
  auto bytes = co_await drain(answer);
  if (f == fault::lost_answer) co_return plain(500, "it broke after all was done");
  if (f == fault::mute_answer) co_return co_await stay_silent(s);
  answer.body.clear();
  answer.stream = std::make_unique<half_a_body>(bytes.substr(0, bytes.size() / 2));
  co_return answer;
}

template <class State>
asio::awaitable<http::response> serve(std::shared_ptr<State> s, http::request req) {
  auto p = phase_of(req);
  if (!p) co_return plain(404, "not found");
  auto f = s->choose(*p, s->calls[static_cast<std::size_t>(*p)]++);
  if (f == fault::none) co_return co_await s->inner(std::move(req));
  ++s->faults;
  co_return co_await misbehave(s, std::move(req), *p, f);
}

template <class State>
task<void> do_put_off(std::shared_ptr<State> s) {
  while (true) {
    http::request req;
    {
      std::lock_guard lock(s->mutex);
      if (s->put_off.empty()) co_return result<void>();
      req = std::move(s->put_off.front());
      s->put_off.pop_front();
    }
    auto answer = co_await s->inner(std::move(req));
    (void)co_await drain(answer);
  }
}

}  // namespace

faulty_server::faulty_server(io_threads& io, const std::string& repository, chooser choose) : io_(io) {
  git_server_options o;
  o.repository = repository;
  o.allow_push = true;
  state_ = std::make_shared<state>(make_git_http_handler(o), std::move(choose));
  server_ = std::make_unique<http_git>(io, [s = state_](http::request req) { return serve(s, std::move(req)); });
}

faulty_server::~faulty_server() {
  server_.reset();
  release();
}

std::unique_ptr<remote> faulty_server::open(std::shared_ptr<object_store> store) {
  return make_http_remote(server_->client(), "/", std::move(store));
}

int faulty_server::faults() const { return state_->faults; }

int faulty_server::calls(phase p) const { return state_->calls[static_cast<std::size_t>(p)]; }

void faulty_server::release() { (void)io_.run<void>(do_put_off(state_)); }

}  // namespace races
