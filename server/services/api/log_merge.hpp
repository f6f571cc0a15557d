// Several pods' logs as one body: whole lines, each with its pod's name where there is more than one.
#pragma once

#include <kubeopera/http/message.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace kubeopera::inline v1::api {

using named_source = std::pair<std::string, std::unique_ptr<http::body_source>>;

/// Reads all sources at once. Destroying the body stops the readers. Memory: at most 1 MiB waits for a slow reader.
std::unique_ptr<http::body_source> merge_logs(asio::any_io_executor executor, std::vector<named_source> sources);

}  // namespace kubeopera::inline v1::api
