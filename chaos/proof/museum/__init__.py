"""The museum: reported incidents as shipped scenarios, each red by the check that finds it and green when fixed."""
