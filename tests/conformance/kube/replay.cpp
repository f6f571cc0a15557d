// Sends the recorded requests and waits for the answers; watches run beside the exchanges they were recorded beside.
#include "replay.hpp"

#include <kubeopera/json/write.hpp>

#include <boost/asio/thread_pool.hpp>
#include <boost/json/parse.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <future>
#include <sstream>

namespace kubeopera::conformance {
namespace {

json::value parse(const std::string& text) {
  boost::json::parse_options options;
  options.max_depth = 128;
  return boost::json::parse(text, {}, options);
}

std::string slurp(const std::filesystem::path& p) {
  std::ifstream in(p, std::ios::binary);
  std::stringstream out;
  out << in.rdbuf();
  return out.str();
}

template <class T>
T wait(boost::asio::thread_pool& pool, boost::asio::awaitable<T> op) {
  std::promise<T> promise;
  auto future = promise.get_future();
  auto run = [](boost::asio::awaitable<T> body, std::promise<T>* out) -> boost::asio::awaitable<void> {
    out->set_value(co_await std::move(body));
  };
  spawn(pool.get_executor(), run(std::move(op), &promise));
  return future.get();
}

struct open_watch {
  http::response response;
  std::string buffer;
  std::vector<std::string> lines;
  bool ended = false;
};

class runner {
 public:
  runner(testing::api_server& server, const surroundings& around, const std::map<std::string, std::string>& known)
      : server_(server), around_(around), known_(known), handler_(server.handler()), pool_(2) {
    server_.add_token("reader", testing::api_user("reader", {}));
  }

  std::vector<outcome> run(const std::vector<exchange>& all) {
    std::vector<outcome> out;
    std::string before;
    for (const auto& x : all) {
      std::string method(json::get_string(x.request, {"method"}));
      // What follows a deletion was asked while it went on.
      if (method != "GET" && before != "DELETE") settle();
      before = method;
      for (const auto& w : all) {
        if (w.is_watch() && w.opened_before() == x.number) open(w);
      }
      if (x.number == 204) server_.compact();  // the recording compacted its store here
      outcome o{x.name, x.setup, x.is_watch() ? finish_watch(x) : call(x)};
      out.push_back(std::move(o));
    }
    watches_.clear();
    return out;
  }

 private:
  std::chrono::milliseconds patience(const exchange& x) const {
    return known_.count(x.name) ? std::chrono::milliseconds(0) : around_.patience();
  }

  http::request make(const exchange& x) const {
    http::request r(std::string(json::get_string(x.request, {"method"})),
                    t_.path(std::string(json::get_string(x.request, {"path"}))));
    std::string plain = x.name.substr(4);
    if (plain == "bad-token") r.headers.set("Authorization", "Bearer nope");
    bool reader = plain.rfind("forbidden-", 0) == 0 || plain == "self-access-review";
    if (plain != "bad-token" && plain != "no-token") r.headers.set("Authorization", reader ? "Bearer reader" : "Bearer admin");
    if (const auto* headers = json::get_object(x.request, {"headers"})) {
      for (const auto& kv : *headers) r.headers.set(kv.key(), std::string(json::as_view(kv.value())));
    }
    if (const auto* b = x.request.if_contains("body")) {
      r.body = b->is_string() ? std::string(json::as_view(*b)) : json::write(t_.body(*b));
      if (!r.headers.get("Content-Type")) r.headers.set("Content-Type", "application/json");
    }
    return r;
  }

  http::response send(const exchange& x) { return wait(pool_, handler_(make(x))); }

  std::vector<std::string> call(const exchange& x) {
    auto until = std::chrono::steady_clock::now() + patience(x);
    for (;;) {
      http::response r = send(x);
      std::vector<std::string> diff = differences(x, r);
      if (r.status == 201 && json::get_int(x.response, {"status"}) >= 400) undo(x, r);
      bool again = json::get_string(x.request, {"method"}) == "GET" && std::chrono::steady_clock::now() < until;
      if (diff.empty() || !again) return diff;
      pause();  // controllers work meanwhile
    }
  }

  // What was made although the recording refused it goes again, so that later exchanges see the same cluster.
  void undo(const exchange& x, const http::response& made) {
    std::string path = t_.path(std::string(json::get_string(x.request, {"path"})));
    json::value o = parse(made.body);
    http::request gone("DELETE",
                       path.substr(0, path.find('?')) + "/" + std::string(json::get_string(o.as_object(), {"metadata", "name"})));
    gone.headers.set("Authorization", "Bearer admin");
    wait(pool_, handler_(std::move(gone)));
  }

  void pause() {
    auto slept = wait(pool_, sleep_for(std::chrono::milliseconds(5)));
    if (!slept) throw std::runtime_error("cancelled");
  }

  // The recording let controllers finish before it went on: waits until nobody has written for a while, with a deadline.
  void settle() {
    if (around_.patience().count() == 0) return;
    auto until = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    auto seen = server_.resource_version();
    for (int quiet = 0; quiet < 12 && std::chrono::steady_clock::now() < until;) {
      pause();
      auto now = server_.resource_version();
      quiet = now == seen ? quiet + 1 : 0;
      seen = now;
    }
  }

  std::vector<std::string> differences(const exchange& x, const http::response& r) {
    std::vector<std::string> out;
    auto want = json::get_int(x.response, {"status"});
    if (want != r.status) out.push_back("status: recorded " + std::to_string(want) + ", is " + std::to_string(r.status));
    if (const auto* headers = json::get_object(x.response, {"headers"})) {
      for (const auto& kv : *headers) {
        if (kv.key() == "transfer-encoding") continue;
        std::string is(r.headers.get(kv.key()).value_or(""));
        if (is != json::as_view(kv.value())) {
          out.push_back("header " + std::string(kv.key()) + ": recorded " + std::string(json::as_view(kv.value())) + ", is " +
                        is);
        }
      }
      for (const char* name : {"Warning", "Retry-After"}) {
        std::string lower = name;
        std::transform(lower.begin(), lower.end(), lower.begin(),
                       [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
        if (r.headers.get(name) && !headers->if_contains(lower)) out.push_back("header " + lower + " was not recorded");
      }
    }
    if (const auto* text = x.response.if_contains("text")) {
      for (auto& d : t_.compare_text(std::string(json::as_view(*text)), r.body)) out.push_back(std::move(d));
      return out;
    }
    const auto* doc = x.response.if_contains("json");
    if (!doc) return out;
    boost::system::error_code ec;
    boost::json::parse_options options;
    options.max_depth = 128;
    json::value is = boost::json::parse(r.body, ec, {}, options);
    if (ec) {
      out.push_back("body is not JSON: " + r.body.substr(0, 200));
      return out;
    }
    for (auto& d : t_.compare(*doc, is)) out.push_back(std::move(d));
    return out;
  }

  void open(const exchange& x) { watches_[x.number].response = send(x); }

  // Reads one more piece; false when none comes in time.
  bool read(open_watch& w, std::chrono::milliseconds time) {
    if (w.ended || !w.response.stream) return false;
    result<std::string> piece = wait(pool_, with_deadline(time, w.response.stream->next()));
    if (!piece) return false;
    if (piece->empty()) {
      w.ended = true;
      return false;
    }
    w.buffer += *piece;
    for (auto end = w.buffer.find('\n'); end != std::string::npos; end = w.buffer.find('\n')) {
      w.lines.push_back(w.buffer.substr(0, end));
      w.buffer.erase(0, end + 1);
    }
    return true;
  }

  std::vector<std::string> finish_watch(const exchange& x) {
    open_watch w = std::move(watches_[x.number]);
    watches_.erase(x.number);
    const auto& want = *json::get_array(x.response, {"lines"});
    bool closes = json::get_bool(x.response, {"server_closed"});
    std::vector<std::string> out;
    if (w.response.status != json::get_int(x.response, {"status"})) return {"status is " + std::to_string(w.response.status)};
    auto until = std::chrono::steady_clock::now() + (closes ? std::chrono::milliseconds(3000) : patience(x)) +
                 std::chrono::milliseconds(20);
    auto quiet = std::chrono::milliseconds(closes ? 3000 : 40);
    while (!w.ended && std::chrono::steady_clock::now() < until) {
      bool enough = w.lines.size() >= want.size() && !closes;
      auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
      if (!read(w, enough ? quiet : std::max(left, quiet)) && enough) break;
    }
    if (closes != w.ended) out.push_back(closes ? "the server did not end the watch" : "the server ended the watch");
    return compare_lines(x, want, w.lines, std::move(out));
  }

  // How many events a rollout makes depends on timing: consecutive equal states count once.
  std::vector<std::string> compare_lines(const exchange&, const json::array& want, const std::vector<std::string>& is,
                                         std::vector<std::string> out) {
    if (want.size() != is.size()) {
      out.push_back("lines: recorded " + std::to_string(want.size()) + ", are " + std::to_string(is.size()));
    }
    for (std::size_t i = 0; i < std::min<std::size_t>(want.size(), is.size()); ++i) {
      bool bookmark = want[i].is_object() && json::get_string(want[i].get_object(), {"type"}) == "BOOKMARK";
      json::value recorded = want[i], actual = parse(is[i]);
      if (bookmark) blank_version(recorded), blank_version(actual);
      for (auto& d : t_.compare(recorded, actual)) out.push_back("line " + std::to_string(i) + d);
    }
    return out;
  }

  static void blank_version(json::value& event) {
    auto* v = event.is_object() ? event.get_object().if_contains("object") : nullptr;
    if (v && v->is_object()) json::ensure_object(v->get_object(), "metadata")["resourceVersion"] = "";
  }

  testing::api_server& server_;
  const surroundings& around_;
  const std::map<std::string, std::string>& known_;
  http::handler handler_;
  boost::asio::thread_pool pool_;
  translation t_;
  std::map<int, open_watch> watches_;
};

}  // namespace

std::vector<exchange> load(const std::string& folder) {
  std::vector<exchange> out;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".json") continue;
    json::value doc = parse(slurp(entry.path()));
    exchange x;
    x.name = entry.path().stem().string();
    x.number = std::stoi(x.name.substr(0, 3));
    x.setup = x.name.substr(4) == "setup";
    x.request = doc.at("request").as_object();
    x.response = doc.at("response").as_object();
    out.push_back(std::move(x));
  }
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.number < b.number; });
  if (out.empty()) throw std::runtime_error("no exchanges in " + folder);
  return out;
}

std::vector<outcome> replay(const std::vector<exchange>& all, testing::api_server& server, const surroundings& around,
                            const std::map<std::string, std::string>& known) {
  return runner(server, around, known).run(all);
}

}  // namespace kubeopera::conformance
