"""How well a policy does: on hidden reward, where an environment has it."""
