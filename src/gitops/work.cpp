// The threads behind disk_work().
#include "src/gitops/work.hpp"

namespace kubeopera::inline v1::gitops::detail {

offload& disk_work() {
  static offload threads(2);
  return threads;
}

}  // namespace kubeopera::inline v1::gitops::detail
