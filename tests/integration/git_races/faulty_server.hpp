// A real smart HTTP server whose answers go wrong by plan, at the level of HTTP and of Git's protocol.
#pragma once

#include "tests/integration/gitops/harness.hpp"

#include <optional>

namespace races {

using namespace harness;

enum class fault {
  none,
  unauthorized,   ///< 401
  forbidden,      ///< 403
  missing,        ///< 404
  broken,         ///< 500
  busy,           ///< 503 with Retry-After: 1
  garbage,        ///< 200 of the right type and bytes that are no pkt-lines
  wrong_service,  ///< 200 of another type
  silent,         ///< accepted, never answered, never done
  cut_answer,     ///< done, and the answer ends in its middle
  lost_answer,    ///< done, and answered 500
  mute_answer,    ///< done, and never answered
  done_later,     ///< never answered; done once release() is called, after whoever asked has gone
};

/// What a request is, as far as Git is concerned.
enum class phase { read_refs, fetch, write_refs, push };
std::optional<phase> phase_of(const http::request& req);

class faulty_server {
 public:
  using chooser = std::function<fault(phase p, int call)>;  ///< call counts the requests of a phase from 0

  faulty_server(io_threads& io, const std::string& repository, chooser choose);
  /// Waits for what was put off.
  ~faulty_server();
  std::unique_ptr<remote> open(std::shared_ptr<object_store> store);
  std::string url() const { return server_->url(); }
  int faults() const;
  int calls(phase p) const;
  /// Does everything that was put off, and returns once it is done.
  void release();

 private:
  struct state;
  io_threads& io_;
  std::shared_ptr<state> state_;
  std::unique_ptr<http_git> server_;
};

}  // namespace races
