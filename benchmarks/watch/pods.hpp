// The pods that every contender reads: one recorded pod under many names.
#pragma once

#include <cstddef>
#include <string>

namespace watch_bench {

/// Pod number i as JSON, as a real API server wrote it (managedFields included).
std::string pod(std::size_t i);
/// A watch stream that modifies count pods.
std::string stream(std::size_t count);
/// Serves count pods as lists and quiet watches on a free port; prints the URL, runs until killed.
int serve(std::size_t count);
/// Lists and caches the pods of url with our informer; prints one line of JSON.
int list(const std::string& url, std::size_t count);

}  // namespace watch_bench
