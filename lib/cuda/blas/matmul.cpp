#include "cuda/blas/blas_ops.hpp"

#include <bit>
#include <cstdint>
#include <string_view>

namespace coaccel::cuda {
namespace {

template <class T>
constexpr cudaDataType_t lt_type() noexcept
{
    if constexpr (std::same_as<T, float>)
        return CUDA_R_32F;
    else if constexpr (std::same_as<T, half>)
        return CUDA_R_16F;
    else if constexpr (std::same_as<T, bfloat16>)
        return CUDA_R_16BF;
    else if constexpr (std::same_as<T, float8_e4m3>)
        return CUDA_R_8F_E4M3;
    else if constexpr (std::same_as<T, float8_e5m2>)
        return CUDA_R_8F_E5M2;
    else if constexpr (std::same_as<T, std::int8_t>)
        return CUDA_R_8I;
    else {
        static_assert(std::same_as<T, std::int32_t>);
        return CUDA_R_32I;
    }
}

template <class Op>
cublasComputeType_t lt_compute_type(const Op& op) noexcept
{
    if constexpr (!requires { op.math; })
        return CUBLAS_COMPUTE_32F;
    else if constexpr (std::same_as<typename Op::source_type, std::int8_t>)
        return op.math == blas::math::pedantic ? CUBLAS_COMPUTE_32I_PEDANTIC : CUBLAS_COMPUTE_32I;
    else if (op.math == blas::math::pedantic)
        return CUBLAS_COMPUTE_32F_PEDANTIC;
    else
        return std::same_as<typename Op::source_type, float> && op.math == blas::math::tf32
                   ? CUBLAS_COMPUTE_32F_FAST_TF32
                   : CUBLAS_COMPUTE_32F;
}

constexpr cublasLtEpilogue_t lt_epilogue(blas::activation a, bool bias) noexcept
{
    switch (a) {
    case blas::activation::relu: return bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
    case blas::activation::gelu: return bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
    case blas::activation::none: break;
    }
    return bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

/// The greatest power of two, at most 256, that divides the address.
std::uint32_t alignment_of(const void* p) noexcept
{
    const auto address = reinterpret_cast<std::uintptr_t>(p) | 256;
    return static_cast<std::uint32_t>(address & -address);
}

/// A graph over existing buffers is prepared with copies of them, whose addresses may be better aligned.
error_code check_alignment(std::string_view op, const lt_problem& prepared, const lt_problem& captured) noexcept
{
    const struct {
        std::string_view field;
        std::uint32_t needed, found;
    } operands[] = {{"a", prepared.a.alignment, captured.a.alignment},
                    {"b", prepared.b.alignment, captured.b.alignment},
                    {"bias", prepared.bias_alignment, captured.bias_alignment},
                    {"c", prepared.c.alignment, captured.c.alignment}};
    for (const auto& [field, needed, found] : operands)
        if (found < needed)
            return coaccel::detail::op_error(errc::unsupported_op, op,
                                             {field, " starts at a multiple of ", found,
                                              " bytes, as part of a graph it must start at a multiple of ", needed});
    return {};
}

template <class T>
lt_matrix lt_operand(const T* p, std::uint64_t rows, std::uint64_t cols, std::uint64_t ld, std::uint64_t batch,
                     std::uint64_t stride) noexcept
{
    return {lt_type<T>(), rows, cols, leading(rows, cols, ld), batch_stride(batch, stride), alignment_of(p)};
}

/// How an op of cuBLASLt runs.
template <class Op>
struct matmul_code {
    static constexpr bool has_bias = requires(const Op& op) { op.bias; };
    static constexpr bool scaled = requires(const Op& op) { op.scale_a; };

    static lt_handle& handle(backend& b, stream_state& s) { return s.resources.get<blas_handle>(b, s.native).lt(); }

    static lt_arguments arguments(const Op& op, const bound_op& o) noexcept
    {
        lt_arguments with{};
        with.a = o.data(op.a);
        with.b = o.data(op.b);
        with.c = o.data(op.c);
        if constexpr (has_bias)
            with.bias = o.data(op.bias);
        if constexpr (scaled) {
            with.scale_a = o.data(op.scale_a);
            with.scale_b = o.data(op.scale_b);
        }
        with.alpha_bits = std::bit_cast<std::uint32_t>(op.alpha);
        with.beta_bits = std::bit_cast<std::uint32_t>(op.beta);
        if (!o.scalars.empty()) {
            with.alpha_address = factor(o, op.alpha);
            with.beta_address = factor(o, op.beta);
        }
        return with;
    }

    static lt_problem problem(const Op& op, const bound_op& o) noexcept
    {
        const auto s = op.shape();
        lt_problem p{};
        p.a = lt_operand(o.data(op.a), s.a_rows(), s.a_cols(), op.lda, op.batch, op.stride_a);
        p.b = lt_operand(o.data(op.b), s.b_rows(), s.b_cols(), op.ldb, op.batch, op.stride_b);
        p.c = lt_operand(o.data(op.c), op.m, op.n, op.ldc, op.batch, op.stride_c);
        p.trans_a = s.trans_a == blas::transpose::no ? CUBLAS_OP_N : CUBLAS_OP_T;
        p.trans_b = s.trans_b == blas::transpose::no ? CUBLAS_OP_N : CUBLAS_OP_T;
        p.batch = static_cast<std::int32_t>(op.batch);
        p.compute = lt_compute_type(op);
        p.scale_type = lt_type<std::remove_cvref_t<decltype(op.alpha)>>();
        p.pointers = o.scalars.empty() ? CUBLASLT_POINTER_MODE_HOST : CUBLASLT_POINTER_MODE_DEVICE;
        p.epilogue = lt_epilogue(op.activation, has_bias);
        if constexpr (has_bias) {
            const auto* const bias = o.data(op.bias);
            p.bias_type = lt_type<std::remove_cvref_t<decltype(*bias)>>();
            p.bias_alignment = alignment_of(bias);
        }
        p.scaled = scaled;
        return p;
    }

    static result<readiness> prepare(backend& b, stream_state& s, bound_op& o)
    {
        const Op& op = o.as<Op>();
        if constexpr (scaled)
            if (const int found = b.compute_capability(); found < 89)
                return coaccel::detail::op_error(
                    errc::unsupported_op, o.info->name,
                    {"the GPU has compute capability ", found / 10, ".", found % 10, ", fp8 needs 8.9"});
        leave_plan(o);
        lt_plan* plan = nullptr;
        BOOST_OUTCOME_TRY(const auto ready, handle(b, s).prepare(o.info->name, problem(op, o), arguments(op, o), plan));
        o.state = plan;
        return ready;
    }

    static error_code enqueue(backend& b, stream_state& s, bound_op& o)
    {
        const Op& op = o.as<Op>();
        auto& plan = *static_cast<lt_plan*>(o.state);
        if (auto ec = check_alignment(o.info->name, plan.problem(), problem(op, o)))
            return ec;
        return handle(b, s).launch(plan, arguments(op, o));
    }

    static error_code finish(backend&, bound_op& o) noexcept
    {
        leave_plan(o);
        return {};
    }

    static void leave_plan(bound_op& o) noexcept
    {
        if (o.state)
            --static_cast<lt_plan*>(std::exchange(o.state, nullptr))->users;
    }

    // The product, and the sum of its parts.
    static std::size_t commands(const bound_op&) noexcept { return 2; }
};

template <op... Ops>
void add_matmuls(op_table& table, type_list<Ops...>)
{
    (table.add<Ops>({.prepare = matmul_code<Ops>::prepare,
                     .enqueue = matmul_code<Ops>::enqueue,
                     .finish = matmul_code<Ops>::finish,
                     .commands = matmul_code<Ops>::commands}),
     ...);
}

} // namespace

void add_matmul(op_table& table)
{
    blas::detail::for_each_matmul_element([&table]<class T>() { add_matmuls(table, blas::matmul_for<T>{}); });
}

} // namespace coaccel::cuda
