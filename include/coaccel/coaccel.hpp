#ifndef COACCEL_COACCEL_HPP
#define COACCEL_COACCEL_HPP

#include <coaccel/actor/actor.hpp>
#include <coaccel/actor/ask.hpp>
#include <coaccel/actor/mailbox.hpp>
#include <coaccel/actor/supervisor.hpp>
#include <coaccel/actor/watch.hpp>
#include <coaccel/core/as_result.hpp>
#include <coaccel/core/log.hpp>
#include <coaccel/cuda/libraries.hpp>
#include <coaccel/device/device.hpp>
#include <coaccel/device/device_options_text.hpp>
#include <coaccel/device/resident.hpp>
#include <coaccel/device/system_info.hpp>
#include <coaccel/device/with_retry.hpp>
#include <coaccel/ops/blas.hpp>
#include <coaccel/ops/jit.hpp>
#include <coaccel/ops/memory.hpp>
#include <coaccel/ops/plugin_call.hpp>

#endif
