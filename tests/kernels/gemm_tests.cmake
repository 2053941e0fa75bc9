# The grouped GEMM's tests. Those labelled gpu skip by name where there is no device.
fusescope_test(gemm_rules_test SOURCES gemm_rules_test.cpp LINK fusescope_gemm)
fusescope_test(gemm_tile_order_test SOURCES gemm_tile_order_test.cpp LINK fusescope_layer)
fusescope_test(gemm_test SOURCES gemm_test.cu LINK fusescope_gemm LABELS gpu)
fusescope_test(gemm_gate_test SOURCES gemm_gate_test.cu LINK fusescope_gemm LABELS gpu)
# Endless waits become launch failures.
target_compile_definitions(gemm_gate_test PRIVATE FUSESCOPE_GEMM_WATCHDOG)
